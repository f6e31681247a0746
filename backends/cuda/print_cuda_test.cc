// Compiles fused groups in CUDA C++ for several architectures. This needs NVRTC, but no GPU.
#include "print_cuda.h"

#include <gtest/gtest.h>

#include <memory>

#include "fused_groups/random_group.h"
#include "nvrtc.h"

namespace tessera::cuda {
namespace {

constexpr const char* kArchitectures[] = {"sm_75", "sm_90", "sm_100"};

class CudaSource : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      nvrtc_ = std::make_unique<Nvrtc>(TESSERA_NVRTC_FOLDER);
    } catch (const plugin::Failure& reason) {
      missing_ = reason.what();
    }
  }
  void SetUp() override {
    if (nvrtc_ == nullptr) GTEST_SKIP() << missing_;
  }

  static inline std::unique_ptr<Nvrtc> nvrtc_;
  static inline std::string missing_;
};

std::string source_of(const plugin::FusedGroup& group) {
  return cuda_source(group, plugin::c_kernel(group, plugin::loop_nests(group, "").at(0)));
}

TEST_F(CudaSource, CompilesForEachArchitecture) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const std::string source = source_of(codegen::random_group(seed, seed).group);
    for (const char* architecture : kArchitectures) {
      const Cubin cubin = nvrtc_->compile(source, architecture, exact_options());
      EXPECT_EQ(cubin.bytes.substr(0, 4),
                "\x7f"
                "ELF")
          << architecture;
      const KernelUsage usage = usage_from_log(cubin.log)["fused"];
      EXPECT_GT(usage.registers, 0) << cubin.log;
      EXPECT_EQ(usage.spill_store_bytes + usage.spill_load_bytes, 0)
          << "seed " << seed << " for " << architecture << "\n"
          << cubin.log;
    }
  }
}

TEST_F(CudaSource, IsTheSameForOtherSizes) {
  const auto group = [](int64_t rows) {
    plugin::FusedGroup made;
    plugin::FusedAccess access;
    made.dims = {rows, 1'000};
    access.strides = {1'000, 1};
    made.operands = {access};
    access.instruction = 0;
    made.results = {access};
    made.instructions = {{TESSERA_EXPRESSION_OPERAND, TESSERA_FLOAT32, {-1, -1, -1}, 0, 0}};
    return made;
  };
  EXPECT_EQ(source_of(group(3)), source_of(group(50)));
}

struct Wrong {
  const char* name;
  const char* source;
  const char* architecture;
  int32_t kind;
};

TEST_F(CudaSource, FailsWithTheReason) {
  const Wrong rows[] = {
      {"a wrong program", "extern \"C\" __global__ void fused() { return 1 }", "sm_90",
       TESSERA_DEVICE_FAILED},
      {"an unknown architecture", "extern \"C\" __global__ void fused() {}", "sm_1",
       TESSERA_UNSUPPORTED},
  };
  for (const Wrong& row : rows) {
    try {
      nvrtc_->compile(row.source, row.architecture);
      ADD_FAILURE() << row.name;
    } catch (const plugin::Failure& failure) {
      EXPECT_EQ(failure.kind(), row.kind) << row.name << ": " << failure.what();
    }
  }
}

TEST(Nvrtc, IsMissingWithAReason) { EXPECT_THROW(Nvrtc("/nowhere"), plugin::Failure); }

}  // namespace
}  // namespace tessera::cuda
