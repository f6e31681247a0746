// Numbers that stand in a graph as constants.
#pragma once

#include <optional>

#include "tessera/backend.h"

namespace tessera::native {

// The number in a constant of one element; nullopt where `value` is none, or of another type than
// such constants have.
std::optional<double> number_in(const plugin::Value& value);

}  // namespace tessera::native
