// The nested graphs that change scores are tested by the cases of ONNX and of
// tests/models/transformers_test.py.
#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Node flex_node(Attributes attributes) {
  return make_node(all_ops(), "FlexAttention", 1, std::move(attributes), {true, true, true}, 1,
                   "ai.onnx.preview");
}

std::vector<Tensor> run_flex(Attributes attributes, const std::vector<Tensor>& inputs) {
  const Node node = flex_node(std::move(attributes));
  ThreadPool pool(2);
  return evaluate(all_ops().of(node), node, inputs, pool);
}

std::string flex_refusal(Attributes attributes, const std::vector<Tensor>& inputs) {
  const auto error = thrown_by([&] { run_flex(std::move(attributes), inputs); });
  return error ? error->message() : "";
}

TEST(FlexAttention, WithoutNestedGraphsIsAttention) {
  // Both heads of queries share the head of keys; the scores are 0 and 2.
  const std::vector<Tensor> inputs = {floats({1, 2, 1, 1}, {1, 2}), floats({1, 1, 2, 1}, {0, 2}),
                                      floats({1, 1, 2, 1}, {0, 1})};
  EXPECT_THAT(values(run_flex({}, inputs)[0]), is_about({weight_of(2), weight_of(4)}));
  EXPECT_THAT(values(run_flex(attributes_of({{"scale", 0.5F}}), inputs)[0]),
              is_about({weight_of(1), weight_of(2)}));
}

TEST(FlexAttention, RoundsToThePrecisionOfTheSoftmax) {
  const std::vector<Tensor> inputs = {floats({1, 1, 1, 1}, {1}), floats({1, 1, 2, 1}, {2048, 2049}),
                                      floats({1, 1, 2, 1}, {0, 1})};
  EXPECT_THAT(values(run_flex(attributes_of({{"softmax_precision", int64_t{10}}}), inputs)[0]),
              is_about({kHalf}));
  EXPECT_THAT(flex_refusal(attributes_of({{"softmax_precision", int64_t{6}}}), inputs),
              HasSubstr("found 6"));
}

TEST(FlexAttention, RefusesWhatDoesNotFit) {
  EXPECT_THAT(flex_refusal({}, {zeros({1, 2, 3}), zeros({1, 1, 2, 3}), zeros({1, 1, 2, 3})}),
              HasSubstr("4 dimensions"));
  EXPECT_THAT(flex_refusal({}, {zeros({1, 3, 1, 2}), zeros({1, 2, 1, 2}), zeros({1, 2, 1, 2})}),
              HasSubstr("multiple of that of keys"));
  EXPECT_THAT(flex_refusal({}, {zeros({1, 1, 1, 2}), zeros({1, 1, 4, 2}), zeros({1, 1, 5, 2})}),
              HasSubstr("[1x1x4x2]"));
}

}  // namespace
}  // namespace tessera::ops
