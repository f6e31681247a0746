#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Reduce, EveryOpOfTheFamily) {
  struct Case {
    const char* op;
    std::vector<float> expected;  // over the rows of {{1, 2}, {-3, 4}}; logarithms of magnitudes
    float empty;                  // the result for no elements
  };
  const Case cases[] = {
      {"ReduceSum", {3, 1}, 0},
      {"ReduceMean", {1.5F, 0.5F}, NAN},
      {"ReduceProd", {2, -12}, 1},
      {"ReduceMax", {2, 4}, -kInfinity},
      {"ReduceMin", {1, -3}, kInfinity},
      {"ReduceL1", {3, 7}, 0},
      {"ReduceL2", {std::sqrt(5.0F), 5}, 0},
      {"ReduceLogSum", {std::log(3.0F), 0}, -kInfinity},
      {"ReduceLogSumExp", {2.3132617F, 4.0009115F}, -kInfinity},
      {"ReduceSumSquare", {5, 25}, 0},
  };
  const Tensor input = floats({2, 2}, {1, 2, -3, 4});
  for (const Case& item : cases) {
    const auto by_attribute =
        run_op(item.op, 11, attributes_of({{"axes", {-1}}, {"keepdims", 0}}), {input});
    const auto by_input = run_op(item.op, 18, {}, {input, ints({1})});
    EXPECT_THAT(by_attribute[0].dims(), ElementsAre(2));
    EXPECT_THAT(by_input[0].dims(), ElementsAre(2, 1));
    for (size_t row = 0; row < 2; ++row) {
      EXPECT_NEAR(values(by_attribute[0])[row], item.expected[row], 1e-6) << item.op;
      EXPECT_EQ(values(by_attribute[0])[row], values(by_input[0])[row]) << item.op;
    }
    const float empty = values(run_op(item.op, 18, {}, {floats({0}, {})})[0])[0];
    if (std::isnan(item.empty)) {
      EXPECT_TRUE(std::isnan(empty)) << item.op;
    } else {
      EXPECT_EQ(empty, item.empty) << item.op;
    }
  }
}

TEST(Reduce, ReducesAxesThatAreNotNeighbours) {
  const Tensor input = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto outputs =
      run_op("ReduceSum", 13, attributes_of({{"keepdims", 0}}), {input, ints({0, 2})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(14, 22));
}

TEST(Reduce, EmptyAxesMeanAllOrNone) {
  const Tensor input = floats({2}, {3, 4});
  EXPECT_THAT(values(run_op("ReduceSum", 13, {}, {input, ints({})})[0]), ElementsAre(7));
  const auto noop = attributes_of({{"noop_with_empty_axes", 1}});
  EXPECT_THAT(values(run_op("ReduceSum", 13, noop, {input, ints({})})[0]), ElementsAre(3, 4));
  // The operations before and after the reduction remain.
  EXPECT_THAT(values(run_op("ReduceSumSquare", 18, noop, {input})[0]), ElementsAre(9, 16));
}

TEST(Reduce, IntegersWrapAroundAndBoolsAreOrdered) {
  const auto sum = run_op("ReduceSum", 13, {}, {ints({INT64_MAX, 1})});
  EXPECT_EQ(integers(sum[0])[0], INT64_MIN);
  const auto mean = run_op("ReduceMean", 18, {}, {ints({0}, {})});
  EXPECT_EQ(integers(mean[0])[0], 0);
  const bool mixed[] = {true, false};
  const Tensor bools = Tensor::from<bool>(DataType::Bool, {2}, mixed);
  EXPECT_TRUE(run_op("ReduceMax", 20, {}, {bools})[0].as<bool>()[0]);
  EXPECT_FALSE(run_op("ReduceMin", 20, {}, {bools})[0].as<bool>()[0]);
}

TEST(Reduce, SumsInDoubleAndLogarithmsDoNotOverflow) {
  std::vector<float> numbers(1000, 0.1F);
  numbers[0] = 1e8F;
  EXPECT_EQ(values(run_op("ReduceSum", 13, {}, {floats({1000}, numbers)})[0])[0], 1e8F + 96);
  EXPECT_NEAR(values(run_op("ReduceLogSumExp", 18, {}, {floats({2}, {1000, 1000})})[0])[0],
              1000 + std::log(2.0F), 1e-4);
  EXPECT_EQ(values(run_op("ReduceLogSumExp", 18, {}, {floats({2}, {kInfinity, 0})})[0])[0],
            kInfinity);
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceLogSumExp"}) {
    EXPECT_TRUE(std::isnan(values(run_op(op, 18, {}, {floats({3}, {1, NAN, 2})})[0])[0])) << op;
  }
}

TEST(Reduce, FollowsElements) {
  const Dim n = Dim::symbol("n");
  const auto reduced = [&](const char* op, std::vector<Dim> elements) {
    return infer_op(op, 13, attributes_of({{"keepdims", 0}}), {followed(std::move(elements))})[0];
  };
  EXPECT_EQ(*reduced("ReduceProd", {2, n, 3}).elements, std::vector<Dim>{multiply(n, 6)});
  EXPECT_EQ(*reduced("ReduceSum", {2, n, 3}).elements, std::vector<Dim>{add(n, 5)});
  EXPECT_EQ(*reduced("ReduceMax", {2, 7}).elements, std::vector<Dim>{7});
  EXPECT_EQ(reduced("ReduceMin", {2, n}).elements, reduced("ReduceMin", {2, n}).elements);
  // A value that would wrap around at run time is not a dimension.
  EXPECT_FALSE(reduced("ReduceProd", {INT64_MAX, 2}).elements.has_value());
}

TEST(Reduce, KeepsSymbolsOfOtherAxes) {
  const InferInput input = typed(DataType::Float32, Shape{Dim::symbol("n"), 3});
  EXPECT_EQ(shape_text(infer_op("ReduceMean", 18, {}, {input, followed({-1})})), "float32 nx1");
  EXPECT_EQ(shape_text(infer_op("ReduceMean", 18, attributes_of({{"keepdims", 0}}),
                                {input, unknown_list(1)})),
            "float32 ?node.0.0");
  EXPECT_THAT(refusal("ReduceSum", 13, {}, {floats({1}, {1}), ints({INT64_MIN})}),
              HasSubstr("[-1, 1)"));
}

}  // namespace
}  // namespace tessera::ops
