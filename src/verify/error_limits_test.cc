#include "verify/error_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "base/tensor/tensors_test.h"
#include "ops/all_ops_test.h"
#include "tessera/float16.h"
#include "verify/compare_tensors.h"
#include "verify/random_tensor.h"

namespace tessera::verification {
namespace {

// A case with its limits, for inputs of our own.
struct Trial {
  OpCase op_case;
  ExpectedValues expected;

  ValueId output() const { return op_case.graph.outputs[0]; }
  const Tensor& value() const { return expected.values[static_cast<size_t>(output().index)]; }
  const ErrorLimits& limits() const { return expected.limits[static_cast<size_t>(output().index)]; }
  const Tensor& magnitude() const {
    return expected.magnitudes[static_cast<size_t>(output().index)];
  }
  std::string judge(const Tensor& found) const {
    return measure_excess(value(), limits(), found).text;
  }
  // The verdict of a tolerance for the whole tensor.
  std::string judge_widely(const Tensor& found) const {
    return explain_difference(value(), magnitude(), found);
  }
};

Trial trial_of(const std::string& text, std::vector<Tensor> inputs = {}) {
  Trial trial;
  trial.op_case = read_op_case(text, all_ops(), 5);
  if (!inputs.empty()) trial.op_case.inputs = std::move(inputs);
  ThreadPool pool(1);
  trial.expected = expected_values(trial.op_case, all_ops(), pool);
  return trial;
}

Tensor tails(int64_t count, uint64_t seed = 3) {
  return in_range(random_tensor(DataType::Float32, {count}, false, seed), ValueRange::Tails, seed);
}

// By element.
Tensor computed(const Tensor& input, const std::function<float(float)>& function) {
  Tensor result(DataType::Float32, input.dims());
  for (int64_t index = 0; index < input.elements(); ++index) {
    const auto at = static_cast<size_t>(index);
    result.mutable_as<float>()[at] = function(input.as<float>()[at]);
  }
  return result;
}

Tensor scalar(float value) { return floats({}, {value}); }

// --- Kernels that are wrong in a way that a tolerance for the whole tensor does not see
// -----------

struct WrongFunction {
  const char* op;
  float (*wrong)(float);
  float (*right)(float);
};

const WrongFunction kWrongFunctions[] = {
    {"Softplus", [](float x) { return x > 30 ? x : std::log(1 + std::exp(x)); },
     [](float x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
    {"Elu", [](float x) { return x > 0 ? x : std::exp(x) - 1; },
     [](float x) { return x > 0 ? x : std::expm1(x); }},
    {"Tanh",
     [](float x) {
       const float twice = std::exp(-2 * std::fabs(x));
       return std::copysign((1 - twice) / (1 + twice), x);
     },
     [](float x) { return std::tanh(x); }},
    {"Sigmoid", [](float x) { return 1 - 1 / (1 + std::exp(x)); },
     [](float x) { return 1 / (1 + std::exp(-x)); }},
    {"Gelu", [](float x) { return 0.5F * x * (1 + std::erf(x * static_cast<float>(M_SQRT1_2))); },
     [](float x) { return 0.5F * x * std::erfc(-x * static_cast<float>(M_SQRT1_2)); }},
    {"Sin",
     [](float x) {
       const auto period = static_cast<float>(2 * M_PI);  // rounded
       return std::sin(x - period * std::round(x / period));
     },
     [](float x) { return std::sin(x); }},
    {"Reciprocal", [](float x) { return static_cast<float>(0x1.000001p0 / x); },
     [](float x) { return 1 / x; }},
    {"Erf", [](float x) { return 1 - std::erfc(x); }, [](float x) { return std::erf(x); }},
};

TEST(ErrorLimits, FindErrorsInTailsAndInSmallResults) {
  const Tensor input = tails(4096);
  for (const WrongFunction& row : kWrongFunctions) {
    SCOPED_TRACE(row.op);
    const Trial trial = trial_of(std::string(row.op) + "(4096)", {input});
    const Tensor wrong = computed(input, row.wrong);
    EXPECT_EQ(trial.judge_widely(wrong), "") << "the case would prove nothing";
    EXPECT_NE(trial.judge(wrong), "");
    EXPECT_EQ(trial.judge(computed(input, row.right)), "");
  }
}

TEST(ErrorLimits, FindReciprocalsInPlaceOfDivisions) {
  const Tensor input = tails(4096);
  for (const float divisor : {3.0F, 7.0F, 10.0F, 0.3F, 255.0F}) {
    const Trial trial = trial_of("Div(4096, s)", {input, scalar(divisor)});
    const float reciprocal = 1 / divisor;
    EXPECT_NE(trial.judge(computed(input, [&](float x) { return x * reciprocal; })), "");
    EXPECT_EQ(trial.judge(computed(input, [&](float x) { return x / divisor; })), "");
  }
}

TEST(ErrorLimits, FindSumsThatStall) {
  constexpr int64_t kCount = int64_t{1} << 20;
  struct Row {
    const char* op;
    std::function<float(float)> term;
    double share;  // of the sum
  };
  const Row rows[] = {
      {"ReduceSum", [](float x) { return x; }, 1},
      {"ReduceMean", [](float x) { return x; }, 1.0 / kCount},
      {"ReduceL1", [](float x) { return std::fabs(x); }, 1},
      {"ReduceSumSquare", [](float x) { return x * x; }, 1},
      {"GlobalAveragePool", [](float x) { return x; }, 1.0 / kCount},
  };
  const Tensor flat = random_tensor(DataType::Float32, {kCount}, true, 9);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op);
    const bool is_pool = std::string(row.op) == "GlobalAveragePool";
    const std::string dims = is_pool ? "(1x1x1x1048576)" : "(1048576)";
    const Tensor input = is_pool ? flat.reshaped({1, 1, 1, kCount}) : flat;
    const Trial trial = trial_of(row.op + dims, {input});
    float one_by_one = 0;
    double wide = 0;
    for (const float x : input.as<float>()) {
      one_by_one += row.term(x);
      wide += double{row.term(x)};
    }
    const auto result = [&](double sum) {
      return scalar(static_cast<float>(sum * row.share)).reshaped(trial.value().dims());
    };
    EXPECT_NE(trial.judge(result(double{one_by_one})), "");
    EXPECT_EQ(trial.judge(result(wide)), "");
  }
}

TEST(ErrorLimits, FindResultsThatAreRoundedTwice) {
  for (const char* type : {"float16", "bfloat16"}) {
    const std::string to = std::string(type) == "float16" ? "10" : "16";
    // Halfway between two numbers of the type, and a little more than that.
    const double half = type == std::string("float16") ? 0x1p-11 : 0x1p-8;
    const std::vector<double> values = {1 + half + 0x1p-40};
    const Tensor input = Tensor::from<double>(DataType::Float64, {1}, values);
    const Trial trial = trial_of("Cast(float64:1) to=" + to, {input});
    const auto in_type = [&](float value) {
      Tensor result = Tensor(trial.value().type(), {1});
      if (to == "10") result.mutable_as<Float16>()[0] = Float16(value);
      if (to == "16") result.mutable_as<BFloat16>()[0] = BFloat16(value);
      return result;
    };
    EXPECT_NE(trial.judge(in_type(static_cast<float>(values[0]))), "") << type;
    EXPECT_EQ(trial.judge(in_type(static_cast<float>(1 + 2 * half))), "") << type;
  }
}

TEST(ErrorLimits, FindStatisticsThatCancel) {
  constexpr int64_t kCount = 4096;
  Tensor input(DataType::Float32, {1, 1, kCount});
  const Tensor spread = random_tensor(DataType::Float32, {kCount}, false, 4);
  for (size_t index = 0; index < kCount; ++index) {
    input.mutable_as<float>()[index] = 8192 + spread.as<float>()[index];
  }
  const Trial trial =
      trial_of("InstanceNormalization(1x1x4096, 1, 1)", {input, floats({1}), floats({0})});
  const auto normalised = [&](double mean, double variance) {
    return computed(input, [&](float x) {
      return static_cast<float>((double{x} - mean) / std::sqrt(variance + 1e-5));
    });
  };
  double sum = 0;
  float squares = 0;
  float narrow = 0;
  for (const float x : input.as<float>()) {
    sum += double{x};
    narrow += x;
    squares += x * x;
  }
  const double mean = sum / kCount;
  double variance = 0;
  for (const float x : input.as<float>()) variance += (double{x} - mean) * (double{x} - mean);
  variance /= kCount;
  const float narrow_mean = narrow / kCount;
  const float narrow_variance = std::max(0.0F, squares / kCount - narrow_mean * narrow_mean);
  EXPECT_NE(trial.judge(normalised(double{narrow_mean}, double{narrow_variance})), "");
  EXPECT_EQ(trial.judge(normalised(mean, variance)), "");
}

// --- Right kernels that compute in another way
// ----------------------------------------------------

TEST(ErrorLimits, CarryErrorsThroughGroups) {
  const Tensor input = tails(4096);
  struct Row {
    const char* text;
    float (*fused)(float);  // with other roundings than node by node
    float (*wrong)(float);
  };
  const Row rows[] = {
      // The sum cancels, so its error is that of the product.
      {"Mul(4096, =0); Sub(@, =0); Abs(@)", [](float x) { return std::fabs(std::fma(x, x, -x)); },
       [](float x) { return std::fabs(std::fma(x, x, -x) * 1.001F); }},
      // exp() multiplies the error.
      {"Mul(4096, =0); Neg(@); Exp(@)",
       [](float x) { return static_cast<float>(std::exp(-double{x} * double{x})); },
       [](float x) { return static_cast<float>(std::exp(-double{x} * double{x}) * 1.01); }},
      {"Sigmoid(4096); Mul(=0, @)", [](float x) { return x / (1 + std::exp(-x)); },
       [](float x) { return x / (1 + std::exp(-x)) * 1.00001F; }},
      {"Tanh(4096); Mul(@, @); Softplus(@)",
       [](float x) {
         const double squared = std::tanh(double{x}) * std::tanh(double{x});
         return static_cast<float>(std::log1p(std::exp(squared)));
       },
       [](float x) {
         const double squared = std::tanh(double{x}) * std::tanh(double{x});
         return static_cast<float>(std::log1p(std::exp(squared)) * 1.00001);
       }},
      {"Abs(4096); Sqrt(@); Neg(@)", [](float x) { return -std::sqrt(std::fabs(x)); },
       [](float x) { return -std::nextafter(std::sqrt(std::fabs(x)), 1e9F); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Trial trial = trial_of(row.text, {input});
    ASSERT_TRUE(trial.limits().is_known());
    EXPECT_EQ(trial.judge(computed(input, row.fused)), "");
    EXPECT_NE(trial.judge(computed(input, row.wrong)), "");
  }
}

TEST(ErrorLimits, AcceptTheOtherSideOfAnEdgeOnlyNearIt) {
  // Products that are rounded fall on an edge which the exact ones miss.
  const Tensor input = floats({0.1F, 0.3F, 0.7F, 5.0F});
  const Trial trial = trial_of("Mul(4, 4); Floor(@)", {input, floats({10, 10, 10, 0.5F})});
  const Tensor& exact = trial.value();
  EXPECT_EQ(trial.judge(exact), "");
  EXPECT_NE(trial.judge(computed(exact, [](float x) { return x == 2 ? 3 : x; })), "");
  const Trial comparison =
      trial_of("Mul(4, 4); Less(@, 4)", {input, floats({10, 10, 10, 0.5F}), floats({1, 3, 7, 9})});
  Tensor found = Tensor(DataType::Bool, {4});
  for (size_t index = 0; index < 4; ++index) {
    found.mutable_as<bool>()[index] = comparison.value().as<bool>()[index];
  }
  EXPECT_EQ(comparison.judge(found), "");
  // 0.1F * 10 is a little more than 1, by less than half an ulp.
  found.mutable_as<bool>()[0] = !found.as<bool>()[0];
  EXPECT_EQ(comparison.judge(found), "");
  found.mutable_as<bool>()[3] = !found.as<bool>()[3];
  EXPECT_NE(comparison.judge(found), "");
}

// The value that the other decision selects may have an error, too.
TEST(ErrorLimits, CountTheErrorOfWhatAnEdgeSelects) {
  // 0.1F * 10 is a little more than 1, by less than half an ulp.
  const Trial trial =
      trial_of("Mul(1, 1); LessOrEqual(@0, 1); Exp(1); Where(@1, @2, 1)",
               {floats({0.1F}), floats({10}), floats({1}), floats({2}), floats({1})});
  const float selected = std::exp(2.0F);
  EXPECT_EQ(trial.judge(floats({1})), "");
  EXPECT_EQ(trial.judge(floats({selected})), "");
  EXPECT_EQ(trial.judge(floats({std::nextafter(selected, 8.0F)})), "");
  EXPECT_EQ(trial.judge(floats({std::nextafter(selected, 7.0F)})), "");
  EXPECT_NE(trial.judge(floats({selected * 1.0001F})), "");
}

// The result depends on the difference of the two alone, and there are many such pairs.
TEST(ErrorLimits, CarryErrorsThroughDifferencesOfAnyTwo) {
  const Trial trial =
      trial_of("Mul(bfloat16:2x512, bfloat16:2x512); Cast(@) to=11; LogSoftmax(@) axis=0");
  const std::span<const double> exact = trial.limits().exact.as<double>();
  const std::span<const double> spread = trial.limits().spread.as<double>();
  const ValueId cast = trial.op_case.graph.nodes[1].outputs[0];
  const auto errors = trial.expected.limits[static_cast<size_t>(cast.index)].spread.as<double>();
  for (size_t at = 0; at < 512; ++at) {
    // The derivative by either input is 1 - exp(y).
    const double needed = 0.9 * (1 - std::exp(exact[at])) * (errors[at] + errors[at + 512]);
    EXPECT_GE(spread[at], needed) << at;
  }
}

TEST(ErrorLimits, OfProductsCountTheMagnitudesOfTheirTerms) {
  const Trial trial = trial_of("MatMul(1x3, 3x1)", {floats({1e6F, -1e6F, 1}).reshaped({1, 3}),
                                                    floats({1, 1, 1}).reshaped({3, 1})});
  const auto found = [](float value) { return floats({value}).reshaped({1, 1}); };
  EXPECT_EQ(trial.judge(found(1)), "");
  EXPECT_EQ(trial.judge(found(1.0625F)), "");
  EXPECT_NE(trial.judge(found(6)), "");
  // Where the terms are small, the error must be small, too, regardless of other elements.
  const Trial rows = trial_of(
      "MatMul(2x2, 2x1)",
      {floats({1e4F, 1e4F, 1e-3F, 1e-3F}).reshaped({2, 2}), floats({1, 1}).reshaped({2, 1})});
  const auto both = [](float second) { return floats({2e4F, second}).reshaped({2, 1}); };
  EXPECT_EQ(rows.judge_widely(both(0.1F)), "");
  EXPECT_NE(rows.judge(both(0.1F)), "");
  EXPECT_EQ(rows.judge(both(2e-3F)), "");
}

TEST(ErrorLimits, KnowWhatOverflowsAndWhatIsFlushed) {
  const Trial overflow = trial_of("Mul(1, 1)", {floats({1e30F}), floats({1e30F})});
  EXPECT_EQ(overflow.judge(floats({INFINITY})), "");
  EXPECT_NE(overflow.judge(floats({-INFINITY})), "");
  EXPECT_NE(overflow.judge(floats({1e38F})), "");
  const Trial underflow = trial_of("Mul(1, 1)", {floats({1e-20F}), floats({1e-20F})});
  EXPECT_EQ(underflow.judge(floats({0})), "");
  EXPECT_EQ(underflow.judge(floats({1e-40F})), "");
  EXPECT_NE(underflow.judge(floats({1e-30F})), "");
}

// A flushed number is zero, which decides otherwise than both ends of an interval.
TEST(ErrorLimits, AcceptThatSomethingIsZeroOnlyWhereItMayBe) {
  const Trial trial = trial_of("Mul(3, 3); Cast(@) to=9",
                               {floats({1e-20F, 1e-10F, 1}), floats({1e-20F, 1e-10F, 5})});
  const auto truths = [](bool first, bool second, bool third) {
    const std::array<bool, 3> elements = {first, second, third};
    return Tensor::from<bool>(DataType::Bool, {3}, elements);
  };
  EXPECT_EQ(trial.judge(truths(true, true, true)), "");
  EXPECT_EQ(trial.judge(truths(false, true, true)), "");
  EXPECT_NE(trial.judge(truths(true, false, true)), "");
  EXPECT_NE(trial.judge(truths(true, true, false)), "");
}

// A kernel that rounds after each node decides otherwise than one that never rounds.
TEST(ErrorLimits, AcceptOnlyWhatTheNodesDecideOneByOne) {
  const Trial trial = trial_of(
      "Cast(uint32:2) to=1; Cast(@) to=3",
      {Tensor::from<uint32_t>(DataType::UInt32, {2}, std::vector<uint32_t>{4294967294U, 5})});
  const auto bytes = [](int8_t first, int8_t second) {
    return Tensor::from<int8_t>(DataType::Int8, {2}, std::vector<int8_t>{first, second});
  };
  EXPECT_EQ(trial.judge(bytes(0, 5)), "");   // float32 has 4294967296
  EXPECT_NE(trial.judge(bytes(-2, 5)), "");  // a wider number keeps 4294967294
  EXPECT_NE(trial.judge(bytes(-1, 5)), "");
  EXPECT_NE(trial.judge(bytes(0, 6)), "");
}

// The number may be rounded to -2, or to the float16 above it. Whole, that is -2 or -1, in both
// terms alike.
TEST(ErrorLimits, DecideOneValueAlikeWhereverItIsRead) {
  const Trial trial = trial_of("Cast(1) to=10; Cast(@) to=6; Add(@, @)", {floats({-1.9995117F})});
  const auto whole = [](int32_t number) {
    return Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{number});
  };
  EXPECT_EQ(trial.judge(whole(-2)), "");
  EXPECT_EQ(trial.judge(whole(-4)), "");
  EXPECT_NE(trial.judge(whole(-3)), "");
  EXPECT_NE(trial.judge(whole(-6)), "");
}

// bfloat16 rounds 1.001 to 1: float64 keeps 1.001, and both ends of its interval differ from 1,
// too.
TEST(ErrorLimits, AcceptThatNumbersAreEqualWhereTheirIntervalsMeet) {
  const Trial trial =
      trial_of("Cast(3) to=16; Equal(@, bfloat16:3); Cast(@) to=11",
               {floats({1.001F, 1.001F, 1.5F}),
                Tensor::from<BFloat16>(
                    DataType::BFloat16, {3},
                    std::vector<BFloat16>{BFloat16(1.0F), BFloat16(2.0F), BFloat16(1.0F)})});
  const auto truths = [](double first, double second, double third) {
    return Tensor::from<double>(DataType::Float64, {3}, std::vector<double>{first, second, third});
  };
  EXPECT_EQ(trial.judge(truths(1, 0, 0)), "");
  EXPECT_NE(trial.judge(truths(1, 1, 0)), "");
  EXPECT_NE(trial.judge(truths(1, 0, 1)), "");
}

// Three numbers that are equal as float32, but not before; their softmax is far from linear.
TEST(ErrorLimits, FollowTheRoundingOfLargeWholeNumbers) {
  const Trial trial = trial_of(
      "Cast(uint32:3) to=1; Softmax(@) axis=0",
      {Tensor::from<uint32_t>(DataType::UInt32, {3},
                              std::vector<uint32_t>{4294967294U, 4294967290U, 4294967295U})});
  EXPECT_EQ(trial.judge(floats({1.0F / 3, 1.0F / 3, 1.0F / 3})), "");
}

TEST(ErrorLimits, AreNotKnownWhereNothingFollows) {
  ThreadPool pool(1);
  for (const char* text : {"MatMul(3x3, 3x3); MatMul(@, 3x3); MatMul(@, 3x3)", "Dropout(3x3)"}) {
    EXPECT_TRUE(trial_of(text).expected.limits.empty()) << text;
  }
  EXPECT_FALSE(trial_of("MatMul(3x3, 3x3); MatMul(@, 3x3)").expected.limits.empty());
}

TEST(ErrorLimits, EachOpOfOnnxStatesABound) {
  for (const ops::Op* op : all_ops().all()) {
    const bool is_own = op->domain.empty();
    EXPECT_TRUE(!is_own || op->error_bound.has_value()) << op->name;
    // The ops of other domains that state one.
    const bool may_state_one = is_own || op->name.starts_with("QLinear");
    EXPECT_TRUE(may_state_one || !op->error_bound.has_value()) << op->name;
  }
}

// (a * 1 + b * 1) / 2: sums that are odd lie in the middle between two integers.
TEST(ErrorLimits, QuantisedNumbersInTheMiddleMayGoEitherWay) {
  ThreadPool pool(1);
  Graph graph;
  const auto value = [&](const std::string& name, DataType type) {
    return add_value(graph, {.name = name, .type = Type::tensor(type, Shape{})});
  };
  Node node = {.name = "sum", .op = "QLinearAdd", .domain = "com.microsoft", .version = 1};
  std::vector<Tensor> known;
  const auto add = [&](const std::string& name, Tensor tensor) {
    const ValueId id = value(name, tensor.type());
    node.inputs.push_back(id);
    known.push_back(std::move(tensor));
  };
  const auto byte = [](uint8_t number) {
    const std::vector<uint8_t> elements = {number};
    return Tensor::from<uint8_t>(DataType::UInt8, {}, elements);
  };
  for (const char* name : {"a", "b"}) {
    add(name, byte(name[0] == 'a' ? 5 : 8));
    add(std::string(name) + "_scale", floats({}, {1}));
    add(std::string(name) + "_zero", byte(0));
  }
  add("scale", floats({}, {2}));
  add("zero", byte(0));
  node.outputs = {value("c", DataType::UInt8)};
  known.emplace_back();
  graph.nodes.push_back(node);
  const auto limits = error_limits(graph, all_ops(), known, pool);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->back().exact.as<uint8_t>()[0], 6);
  ASSERT_FALSE(limits->back().spread.is_empty());
  EXPECT_EQ(limits->back().spread.as<uint8_t>()[0], 7);
  known[0] = byte(6);
  EXPECT_TRUE(error_limits(graph, all_ops(), known, pool)->back().spread.is_empty());
}

}  // namespace
}  // namespace tessera::verification
