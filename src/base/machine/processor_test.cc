#include "base/machine/processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tessera {
namespace {

TEST(Processor, HasANameWithItsInstructionSet) {
  EXPECT_NE(processor_name().find(", "), std::string::npos);
}

// Stored results depend on the name, so both ways to read it must give the same text.
TEST(Processor, IsCalledWhatTheSystemCallsIt) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    EXPECT_EQ(processor_model(), line.substr(line.find(':') + 2));
    return;
  }
  GTEST_SKIP() << "the system does not tell";
}

TEST(Processor, IsNoFasterThanTheTableSays) {
  const ProcessorSpeed measured = measure_speed();
  const ProcessorSpeed assumed = assumed_speed();
  EXPECT_GT(measured.flops_per_second, 1e8);
  EXPECT_GT(measured.bytes_per_second, 1e8);
  EXPECT_LE(measured.flops_per_second, assumed.flops_per_second);
#ifndef TESSERA_SANITIZED
  // If this were far too low, the rivals of every fast product would be skipped as hopeless.
  EXPECT_GT(measured.flops_per_second, 0.35 * assumed.flops_per_second);
#endif
}

}  // namespace
}  // namespace tessera
