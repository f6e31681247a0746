// Fused groups on the plug-in `opencl`, compared with the evaluator of src/codegen.
#include <cmath>

#include "codegen/expression/expression_builder.h"
#include "fused_groups/random_group.h"
#include "opencl_fixture.h"

namespace tessera::opencl {
namespace {

using codegen::ExpressionBuilder;
using codegen::InstructionId;
using codegen::RandomGroup;
using plugin::FusedGroup;

constexpr char kFill = '\x7f';  // the byte with which TestPlugin fills outputs

// A node that stands for the group, with tensors of one dimension.
TestGroup test_group(const FusedGroup& group, const std::vector<std::string>& inputs,
                     const std::vector<int64_t>& output_elements) {
  TestGroup test;
  test.node.op = "Fused";
  test.group = group;
  for (size_t port = 0; port < inputs.size(); ++port) {
    const int32_t type = group.operands[port].data_type;
    const auto bytes = static_cast<int64_t>(inputs[port].size());
    test.node.inputs.push_back({{bytes / plugin::element_bytes(type)}, inputs[port], type});
  }
  for (size_t port = 0; port < output_elements.size(); ++port) {
    test.node.outputs.push_back({group.results[port].data_type, {output_elements[port]}});
  }
  return test;
}

class FusedKernels : public OpenclTest {
 protected:
  // Compares groups of seeds [first, first + count), each in two sizes.
  static void compare_random_groups(uint32_t first, uint32_t count) {
    for (uint32_t seed = first; seed < first + count; ++seed) {
      for (const uint32_t size_seed : {2 * seed, 2 * seed + 1}) {
        const RandomGroup random = codegen::random_group(seed, size_seed, {.has_denormals = false});
        const std::vector<std::string> expected = codegen::expected_outputs(random, kFill);
        const std::vector<TestTensor> found =
            plugin_->run_group(test_group(random.group, random.inputs, random.output_elements));
        ASSERT_EQ(found.size(), expected.size());
        for (size_t port = 0; port < found.size(); ++port) {
          ASSERT_EQ(explain_difference(random, port, expected[port], found[port].bytes), "")
              << "seed " << seed << ", sizes " << size_seed;
        }
      }
    }
  }
};

TEST_F(FusedKernels, EqualTheEvaluator) { compare_random_groups(1, 60); }

// 5,000 groups in parts of two minutes each: --gtest_also_run_disabled_tests
// --gtest_filter='*ManyGroups/0' runs the first of 10.
class ManyFusedKernels : public FusedKernels, public testing::WithParamInterface<uint32_t> {};

TEST_P(ManyFusedKernels, DISABLED_EqualTheEvaluatorForManyGroups) {
  compare_random_groups(1'000 + 250 * GetParam(), 250);
}

INSTANTIATE_TEST_SUITE_P(Parts, ManyFusedKernels, testing::Range(0U, 10U));

// A group of one float32 operand of `dims`, with whole tensors.
struct FloatGroup {
  ExpressionBuilder builder;
  FusedGroup group;

  explicit FloatGroup(std::vector<int64_t> dims) {
    group.nodes = {0};
    group.inputs = {0};
    group.outputs = {1};
    group.dims = std::move(dims);
    add_access(group.operands);
    builder.operand(0, DataType::Float32);
  }

  void add_access(std::vector<plugin::FusedAccess>& accesses) const {
    plugin::FusedAccess access;
    access.is_whole = true;
    access.strides.resize(group.dims.size());
    int64_t stride = 1;
    for (size_t axis = group.dims.size(); axis-- > 0;) {
      access.strides[axis] = stride;
      stride *= group.dims[axis];
    }
    accesses.push_back(std::move(access));
  }

  // The group that computes this value.
  FusedGroup with_result(InstructionId result) {
    add_access(group.results);
    group.results[0].instruction = result;
    for (const codegen::Instruction& instruction : builder.instructions()) {
      group.instructions.push_back(
          {static_cast<int32_t>(instruction.operation),
           static_cast<int32_t>(instruction.type),
           {instruction.arguments[0], instruction.arguments[1], instruction.arguments[2]},
           instruction.index,
           instruction.bits});
    }
    return group;
  }
};

TEST_F(FusedKernels, ComputeAChainOf1100OperationsInOneLaunch) {
  FloatGroup chain({1'024});
  InstructionId last = 0;
  for (int step = 0; step < 550; ++step) {
    last = chain.builder.add(last, chain.builder.number(DataType::Float32, 0.25 + step % 7));
    last =
        chain.builder.multiply(last, chain.builder.number(DataType::Float32, step % 2 ? 0.5 : 2));
  }
  const FusedGroup group = chain.with_result(last);
  const TestTensor x = random_tensor({1'024});
  const RandomGroup reference = {group, {x.bytes}, {1'024}};
  const uint64_t built_before = TestPlugin::built_programs();
  const auto found = plugin_->run_group(test_group(group, {x.bytes}, {1'024}));
  // A launch has a program of its own.
  EXPECT_EQ(TestPlugin::built_programs() - built_before, 1U);
  EXPECT_EQ(explain_difference(reference, 0, codegen::expected_outputs(reference, kFill)[0],
                               found[0].bytes),
            "");
}

// Drivers compute them while they compile, with code of their own.
TEST_F(FusedKernels, RoundConstants) {
  constexpr InstructionId (ExpressionBuilder::* kFunctions[])(InstructionId) = {
      &ExpressionBuilder::floor, &ExpressionBuilder::ceiling, &ExpressionBuilder::truncate,
      &ExpressionBuilder::round};
  for (const auto function : kFunctions) {
    for (const double constant : {double{NAN}, double{-INFINITY}, -2.6e18, 2.5, -0.25}) {
      FloatGroup rounding({7});
      ExpressionBuilder& builder = rounding.builder;
      const InstructionId rounded =
          (builder.*function)(builder.number(DataType::Float32, constant));
      // Needs the bits of the result, and not only its value.
      const InstructionId is_small =
          builder.less(builder.absolute(rounded), builder.number(DataType::Float32, 1e9));
      const FusedGroup group = rounding.with_result(builder.select(is_small, rounded, 0));
      const TestTensor x = random_tensor({7});
      const RandomGroup reference = {group, {x.bytes}, {7}};
      const auto found = plugin_->run_group(test_group(group, {x.bytes}, {7}));
      EXPECT_EQ(explain_difference(reference, 0, codegen::expected_outputs(reference, kFill)[0],
                                   found[0].bytes),
                "")
          << constant;
    }
  }
}

// (x - mean) / sqrt(variance + epsilon), with sums in any order.
TEST_F(FusedKernels, NormaliseRows) {
  struct Row {
    const char* name;
    std::vector<int64_t> dims;
    uint64_t reduced_axes;
  };
  const Row rows[] = {
      {"short rows", {300, 7}, 2},
      {"long rows", {5, 1'001}, 2},
      {"inner axes are kept", {3, 50, 129}, 2},
      {"two separate axes", {20, 3, 20}, 5},
      {"all", {1'000}, 1},
      {"rows of one point", {9, 1}, 2},
  };
  for (const Row& row : rows) {
    FloatGroup normalization(row.dims);
    ExpressionBuilder& builder = normalization.builder;
    normalization.group.reduced_axes = row.reduced_axes;
    double count = 1;
    for (size_t axis = 0; axis < row.dims.size(); ++axis) {
      if ((row.reduced_axes >> axis & 1) != 0) count *= static_cast<double>(row.dims[axis]);
    }
    const InstructionId size = builder.number(DataType::Float32, count);
    const auto mean = [&](InstructionId x) {
      return builder.divide(builder.reduce(codegen::Operation::ReduceSum, x), size);
    };
    const InstructionId centered = builder.subtract(0, mean(0));
    const InstructionId variance = mean(builder.multiply(centered, centered));
    const InstructionId deviation =
        builder.square_root(builder.add(variance, builder.number(DataType::Float32, 1e-5)));
    const FusedGroup group = normalization.with_result(builder.divide(centered, deviation));
    const TestTensor x = random_tensor({group.points()}, 3);
    const RandomGroup reference = {group, {x.bytes}, {group.points()}};
    TestTensor expected = x;
    expected.bytes = codegen::expected_outputs(reference, kFill)[0];
    const auto found = plugin_->run_group(test_group(group, {x.bytes}, {group.points()}));
    EXPECT_THAT(found[0].elements<float>(),
                testing::Pointwise(testing::FloatNear(2e-5F), expected.elements<float>()))
        << row.name;
  }
}

}  // namespace
}  // namespace tessera::opencl
