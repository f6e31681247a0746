#include <cmath>

#include "ops/domains.h"
#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const Tensor kRate = floats({}, {0.5F});
const Tensor kFirst = ints({}, {0});
const Tensor kSecondStep = ints({}, {2});

std::vector<Tensor> step(const std::string& op, Attributes given, const std::vector<Tensor>& inputs,
                         size_t outputs) {
  const Node node = make_node(all_ops(), op, 1, std::move(given),
                              std::vector<bool>(inputs.size(), true), outputs, kTrainingDomain);
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

Attributes momentum_of(const char* mode) {
  return attributes_of(
      {{"alpha", 0.5F}, {"beta", 0.25F}, {"norm_coefficient", 0.0F}, {"mode", mode}});
}

TEST(Momentum, MovesAlongTheAverageGradient) {
  const std::vector<Tensor> inputs = {kRate, kSecondStep, floats({1}), floats({4}), floats({2})};
  // V = 0.5 * 2 + 0.25 * 4 = 2.
  const auto standard = step("Momentum", momentum_of("standard"), inputs, 2);
  EXPECT_THAT(values(standard[0]), ElementsAre(0));
  EXPECT_THAT(values(standard[1]), ElementsAre(2));
  const auto nesterov = step("Momentum", momentum_of("nesterov"), inputs, 2);
  EXPECT_THAT(values(nesterov[0]), ElementsAre(1 - 0.5F * (4 + 1)));
  // The first step takes the whole gradient: V = 1 + 4.
  const auto first = step("Momentum", momentum_of("standard"),
                          {kRate, kFirst, floats({1}), floats({4}), floats({2})}, 2);
  EXPECT_THAT(values(first[1]), ElementsAre(5));
}

TEST(Adagrad, DividesByTheRootOfTheSquares) {
  const auto given =
      attributes_of({{"epsilon", 0.0F}, {"norm_coefficient", 1.0F}, {"decay_factor", 0.5F}});
  // G = 1 + 3 = 4, H = 9 + 16, the rate is 0.5 / 2.
  const auto made =
      step("Adagrad", given, {kRate, kSecondStep, floats({1}), floats({3}), floats({9})}, 2);
  EXPECT_THAT(values(made[0]), ElementsAre(FloatNear(1 - 0.25F * 4 / 5, 1e-6F)));
  EXPECT_THAT(values(made[1]), ElementsAre(25));
}

TEST(Adam, CorrectsTheRate) {
  const auto given = attributes_of(
      {{"alpha", 0.5F}, {"beta", 0.5F}, {"epsilon", 0.0F}, {"norm_coefficient_post", 0.5F}});
  // V = 1 + 2 = 3, H = 0.5 * 2 + 0.5 * 16 = 9, the rate is 0.5 * sqrt(3/4) / (3/4).
  const auto made = step(
      "Adam", given, {kRate, kSecondStep, floats({1}), floats({4}), floats({2}), floats({2})}, 3);
  const float rate = 0.5F * std::sqrt(0.75F) / 0.75F;
  EXPECT_THAT(values(made[0]), ElementsAre(FloatNear(0.5F * (1 - rate), 1e-6F)));
  EXPECT_THAT(values(made[1]), ElementsAre(3));
  EXPECT_THAT(values(made[2]), ElementsAre(9));
}

TEST(Momentum, TakesTensorsOfSeveralTypesAndSizes) {
  const Tensor pair = Tensor::from<double>(DataType::Float64, {2}, std::vector<double>{1, 2});
  const auto made =
      step("Momentum", momentum_of("standard"),
           {kRate, kSecondStep, floats({1}), pair, floats({4}), pair, floats({2}), pair}, 4);
  EXPECT_THAT(values(made[0]), ElementsAre(0));
  EXPECT_EQ(made[1].type(), DataType::Float64);
  EXPECT_THAT(made[3].as<double>(), ElementsAre(0.75, 1.5));
}

TEST(Momentum, RefusesWrongInputs) {
  const auto refusal_of = [](const std::vector<Tensor>& inputs, size_t outputs = 2,
                             const char* mode = "standard") {
    const auto error = thrown_by([&] { step("Momentum", momentum_of(mode), inputs, outputs); });
    return error ? error->message() : "";
  };
  const Tensor one = floats({1});
  EXPECT_THAT(refusal_of({kRate, kFirst, one, one}), HasSubstr("3 inputs for each tensor"));
  EXPECT_THAT(refusal_of({kRate, kFirst, one, one, one}, 1), HasSubstr("expected 2 outputs"));
  EXPECT_THAT(refusal_of({kRate, kFirst, one, floats({1, 2}), one}), HasSubstr("shape [1]"));
  EXPECT_THAT(refusal_of({kRate, kFirst, one, ints({1}), one}), HasSubstr("found int64"));
  EXPECT_THAT(refusal_of({floats({1, 2}), kFirst, one, one, one}), HasSubstr("a scalar"));
  EXPECT_THAT(refusal_of({kRate, kFirst, one, one, one}, 2, "plain"), HasSubstr("found 'plain'"));
}

}  // namespace
}  // namespace tessera::ops
