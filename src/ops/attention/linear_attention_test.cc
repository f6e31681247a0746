#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Attributes linear_rule(const std::string& rule, int64_t query_heads = 1, int64_t key_heads = 1) {
  return attributes_of({{"update_rule", rule},
                        {"q_num_heads", query_heads},
                        {"kv_num_heads", key_heads},
                        {"scale", 1.0F}});
}

// Two positions of one number each.
const std::vector<Tensor>& one_head() {
  static const std::vector<Tensor> kInputs = {floats({1, 2, 1}, {1, 10}), floats({1, 2, 1}, {2, 3}),
                                              floats({1, 2, 1}, {5, 7})};
  return kInputs;
}

std::vector<Tensor> with_state(Tensor state, Tensor decay, Tensor beta) {
  std::vector<Tensor> inputs = one_head();
  inputs.insert(inputs.end(), {std::move(state), std::move(decay), std::move(beta)});
  return inputs;
}

TEST(LinearAttention, AddsOuterProducts) {
  // States: 2 * 5 = 10, then 10 + 3 * 7 = 31.
  const auto outputs = run_op("LinearAttention", 27, linear_rule("linear"), one_head(), 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(10, 310));
  EXPECT_THAT(values(outputs[1]), ElementsAre(31));
  const auto later = run_op("LinearAttention", 27, linear_rule("linear"),
                            with_state(floats({1, 1, 1, 1}, {100}), {}, {}), 2);
  EXPECT_THAT(values(later[0]), ElementsAre(110, 1310));
}

TEST(LinearAttention, GatesAndDeltas) {
  const auto half = static_cast<float>(std::log(0.5));
  const Tensor decay = floats({1, 2, 1}, {0, half});
  const Tensor beta = floats({1, 2, 1}, {0.5F, 1});
  // 10, then 10 / 2 + 21.
  EXPECT_THAT(
      values(run_op("LinearAttention", 27, linear_rule("gated"), with_state({}, decay, {}), 2)[0]),
      is_about({10, 260}));
  // 2 * 0.5 * 5 = 5, then 5 + 3 * (7 - 5 * 3) = -19.
  EXPECT_THAT(
      values(run_op("LinearAttention", 27, linear_rule("delta"), with_state({}, {}, beta), 2)[0]),
      is_about({5, -190}));
  // 5, then 2.5 + 3 * (7 - 2.5 * 3) = 1.
  EXPECT_THAT(values(run_op("LinearAttention", 27, linear_rule("gated_delta"),
                            with_state({}, decay, beta), 2)[0]),
              is_about({5, 10}));
}

TEST(LinearAttention, HeadsOfQueriesShareAState) {
  const auto outputs = run_op(
      "LinearAttention", 27, linear_rule("linear", 2, 1),
      {floats({1, 1, 4}, {1, 0, 0, 1}), floats({1, 1, 2}, {2, 3}), floats({1, 1, 1}, {5})}, 2);
  EXPECT_THAT(values(outputs[0]), ElementsAre(10, 15));
  EXPECT_EQ(outputs[1].dims(), list({1, 1, 2, 1}));
}

TEST(LinearAttention, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const std::vector<Tensor>& inputs) {
    return refusal("LinearAttention", 27, std::move(given), inputs, 2);
  };
  const Tensor rate = zeros({1, 2, 1});
  EXPECT_THAT(refused(linear_rule("other"), one_head()), HasSubstr("'other'"));
  EXPECT_THAT(refused(linear_rule("gated"), one_head()), HasSubstr("the input 'decay'"));
  EXPECT_THAT(refused(linear_rule("linear"), with_state({}, rate, {})),
              HasSubstr("no input 'decay'"));
  EXPECT_THAT(refused(linear_rule("delta"), with_state({}, {}, zeros({1, 2, 2}))),
              HasSubstr("[1x2x1]"));
  EXPECT_THAT(refused(linear_rule("gated"), with_state({}, zeros({1, 3, 1}), {})),
              HasSubstr("expected 2"));
  EXPECT_THAT(refused(linear_rule("linear", 2, 1), one_head()), HasSubstr("multiple of 2 heads"));
  EXPECT_THAT(refused(linear_rule("linear", 3, 2), one_head()),
              HasSubstr("multiple of that of keys"));
  EXPECT_THAT(refused(linear_rule("linear"), with_state(zeros({1, 1, 2, 1}), {}, {})),
              HasSubstr("[1x1x1x1]"));
}

}  // namespace
}  // namespace tessera::ops
