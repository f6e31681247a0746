#include "base/processor.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Processor, HasANameWithItsInstructionSet) {
  EXPECT_NE(processor_name().find(", "), std::string::npos);
}

TEST(Processor, IsNoFasterThanTheTableSays) {
  const ProcessorSpeed measured = measure_speed();
  const ProcessorSpeed assumed = assumed_speed();
  EXPECT_GT(measured.flops_per_second, 1e8);
  EXPECT_GT(measured.bytes_per_second, 1e8);
  EXPECT_LT(measured.flops_per_second, assumed.flops_per_second);
}

}  // namespace
}  // namespace tessera
