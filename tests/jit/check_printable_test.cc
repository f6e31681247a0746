// check_printable() refuses the groups that print_llvm() refuses.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "group_runner.h"
#include "kernel_loops.h"
#include "print_llvm.h"
#include "tessera/backend.h"

namespace tessera::jit {
namespace {

constexpr const char* kAllLevels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const plugin::Failure& failure) {
    return failure.what();
  }
}

// The refusals of all loop nests, after comparing them with those of the printer.
std::string common_refusal(const plugin::FusedGroup& group, const Target& target) {
  std::string refusals;
  for (const plugin::LoopNest& nest : plugin::loop_nests(group, "")) {
    KernelShape shape;
    const std::string loops =
        refusal_of([&] { shape = kernel_loops(group, nest, target.cached_bytes).shape; });
    if (!loops.empty()) continue;
    const std::string printed = refusal_of([&] { print_llvm(group, shape, target); });
    const std::string checked = refusal_of([&] { check_printable(group, shape, target); });
    EXPECT_EQ(checked.empty(), printed.empty()) << checked << printed;
    refusals += checked;
  }
  return refusals;
}

TEST(CheckPrintable, AgreesWithThePrinterOnRandomGroups) {
  int refused = 0;
  for (const char* level : kAllLevels) {
    const Target target = target_of_level(level);
    for (uint32_t seed = 0; seed < 60; ++seed) {
      refused += common_refusal(random_elementwise_case(seed).group, target).empty() ? 0 : 1;
      refused += common_refusal(random_reduction_case(seed).group, target).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 5) << "on x86-64-v2, at least";
}

struct Case {
  const char* what;
  std::function<int32_t(GroupBuilder& builder)> append;
  const char* refusal;  // "": none
};

const Case kCases[] = {
    {"a product",
     [](GroupBuilder& builder) {
       const int32_t x = builder.operand(TESSERA_FLOAT32);
       return builder.append(TESSERA_EXPRESSION_MULTIPLY, TESSERA_FLOAT32, {x, x});
     },
     ""},
    {"integers by a variable",
     [](GroupBuilder& builder) {
       const int32_t x = builder.operand(TESSERA_INT32);
       return builder.append(TESSERA_EXPRESSION_DIVIDE, TESSERA_INT32, {x, x});
     },
     "divides integers by constants other than 0 and -1 only"},
    {"a square root of integers",
     [](GroupBuilder& builder) {
       const int32_t x = builder.operand(TESSERA_INT32);
       return builder.append(TESSERA_EXPRESSION_SQUARE_ROOT, TESSERA_INT32, {x});
     },
     "compiled kernels do not have this operation on integers"},
    {"arithmetic on 16-bit floats behind other arithmetic",
     [](GroupBuilder& builder) {
       const int32_t x = builder.operand(TESSERA_FLOAT32);
       builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT32, {x, x});
       const int32_t half = builder.append(TESSERA_EXPRESSION_CONVERT, TESSERA_FLOAT16, {x});
       return builder.append(TESSERA_EXPRESSION_ADD, TESSERA_FLOAT16, {half, half});
     },
     "compiled kernels do not have arithmetic on 16-bit floats"},
    {"an operation of the future",
     [](GroupBuilder& builder) {
       const int32_t x = builder.operand(TESSERA_FLOAT32);
       return builder.append(1000, TESSERA_FLOAT32, {x});
     },
     "compiled kernels do not have this operation on floats"},
};

TEST(CheckPrintable, SaysWhy) {
  for (const Case& each : kCases) {
    GroupBuilder builder({40});
    builder.result(each.append(builder));
    EXPECT_EQ(common_refusal(builder.group, target_of_level("x86-64-v4")), each.refusal)
        << each.what;
  }
}

TEST(CheckPrintable, RefusesGroupsThatAreTooLarge) {
  GroupBuilder builder({40});
  int32_t value = builder.operand(TESSERA_FLOAT32);
  for (int count = 0; count < 33'000; ++count) {
    value = builder.append(TESSERA_EXPRESSION_NEGATE, TESSERA_FLOAT32, {value});
  }
  builder.result(value);
  EXPECT_NE(common_refusal(builder.group, target_of_level("x86-64-v4")).find("too many"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::jit
