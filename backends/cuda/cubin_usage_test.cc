#include "nvrtc.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

struct Case {
  const char* name;
  const char* log;
  std::map<std::string, KernelUsage> usages;
};

TEST(CubinUsage, IsReadFromTheLog) {
  const Case cases[] = {
      {"nothing", "", {}},
      {"other lines", "ptxas info    : 0 bytes gmem\nUsed 3 registers\n", {}},
      {"two kernels",
       "ptxas info    : Compiling entry function 'other' for 'sm_90'\n"
       "ptxas info    : Function properties for other\n"
       "ptxas         .     800 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
       "ptxas info    : Used 48 registers, used 0 barriers, 800 bytes cumulative stack size\n"
       "ptxas info    : Compiling entry function 'fused' for 'sm_90'\n"
       "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
       "ptxas info    : Used 14 registers, used 1 barriers, 1024 bytes smem, 372 bytes cmem[0]",
       {{"other", {48, 800, 12, 16, 0}}, {"fused", {14, 0, 0, 0, 1024}}}},
      {"numbers that are too large or missing",
       "Compiling entry function 'fused' for 'sm_90'\n"
       "Used 99999999999999999999 registers, bytes smem\n",
       {{"fused", {}}}},
      {"a name without its end", "Compiling entry function 'fused\nUsed 3 registers\n", {}},
  };
  for (const Case& row : cases) EXPECT_EQ(usage_from_log(row.log), row.usages) << row.name;
}

}  // namespace
}  // namespace tessera::cuda
