// GoogleMock's matchers that many tests use, by their short names.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;
using testing::StartsWith;

}  // namespace tessera
