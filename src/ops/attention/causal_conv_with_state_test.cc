#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

TEST(CausalConvWithState, SeesThePresentAndThePast) {
  const auto outputs = run_op("CausalConvWithState", 27, {},
                              {floats({1, 1, 3}, {1, 2, 3}), floats({1, 1, 2}, {10, 1}),
                               floats({1}, {100}), floats({1, 1, 1}, {5})},
                              2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(151, 112, 123));
  EXPECT_THAT(values(outputs[1]), ElementsAre(3));
}

TEST(CausalConvWithState, WithoutAStateThePastIsZero) {
  const auto outputs =
      run_op("CausalConvWithState", 27, {},
             {floats({1, 2, 1}, {1, 2}), floats({2, 1, 3}, {1, 2, 3, 4, 5, 6})}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(3, 12));
  // The input is shorter than the state.
  EXPECT_THAT(values(outputs[1]), ElementsAre(0, 1, 0, 2));
}

TEST(CausalConvWithState, ActivationsAreSwish) {
  for (const char* name : {"silu", "swish"}) {
    const auto outputs =
        run_op("CausalConvWithState", 27, attributes_of({{"activation", std::string(name)}}),
               {floats({1, 1, 2}, {1, -2}), floats({1, 1, 1}, {1})}, 2);
    EXPECT_THAT(values(outputs[0]), is_about({0.731058598F, -0.238405839F}));
    EXPECT_EQ(outputs[1].dims(), list({1, 1, 0}));
  }
}

TEST(CausalConvWithState, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const std::vector<Tensor>& inputs) {
    return refusal("CausalConvWithState", 27, std::move(given), inputs, 2);
  };
  const Tensor input = zeros({1, 2, 3});
  EXPECT_THAT(refused({}, {zeros({1, 2}), zeros({2, 1, 3})}), HasSubstr("3 dimensions"));
  EXPECT_THAT(refused({}, {input, zeros({2, 2, 3})}), HasSubstr("[2x1x3]"));
  EXPECT_THAT(refused({}, {input, zeros({2, 1, 0})}), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refused({}, {input, zeros({2, 1, 3}), zeros({3})}), HasSubstr("[2]"));
  EXPECT_THAT(refused({}, {input, zeros({2, 1, 3}), Tensor(), zeros({1, 2, 3})}),
              HasSubstr("[1x2x2]"));
  EXPECT_THAT(
      refused(attributes_of({{"activation", std::string("relu")}}), {input, zeros({2, 1, 3})}),
      HasSubstr("'relu'"));
}

}  // namespace
}  // namespace tessera::ops
