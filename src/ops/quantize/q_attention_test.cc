#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

// Tokens of 4 numbers, one head of 2.
std::vector<Tensor> attention_inputs(int64_t tokens) {
  std::vector<uint8_t> input;
  for (int64_t index = 0; index < 4 * tokens; ++index) {
    input.push_back(static_cast<uint8_t>(10 + index));
  }
  return {unsigned_bytes({1, tokens, 4}, input),
          unsigned_bytes({4, 6}, {0,  5, 10, 15, 20, 4, 9, 14, 19, 3, 8, 13,
                                  18, 2, 7,  12, 17, 1, 6, 11, 16, 0, 5, 10}),
          floats({0, 0.25F, 0.5F, 0.75F, 1, 1.25F}),
          scalar(0.0625F),
          scalar(0.125F),
          Tensor(),
          zero_point(15),
          zero_point(10)};
}

Attributes one_head() { return attributes_of({{"num_heads", 1}}); }

void expect_attended(const Tensor& found, const std::vector<float>& expected) {
  EXPECT_THAT(values(found), Pointwise(FloatNear(2e-6F), expected));
}

Tensor mask_of(std::vector<int64_t> dims, const std::vector<int32_t>& elements) {
  return Tensor::from<int32_t>(DataType::Int32, std::move(dims), elements);
}

// The expected numbers come from the definition in NumPy, in float64.
TEST(QAttention, AttendsToAllTokens) {
  expect_attended(run_microsoft("QAttention", one_head(), attention_inputs(3))[0],
                  {0.89218F, 1.234071F, 0.891605F, 1.234761F, 0.89103F, 1.235451F});
}

TEST(QAttention, AttendsToTokensBefore) {
  Attributes attributes = one_head();
  attributes.set("unidirectional", int64_t{1});
  expect_attended(run_microsoft("QAttention", attributes, attention_inputs(3))[0],
                  {0.585938F, 1.601562F, 0.739625F, 1.417137F, 0.89103F, 1.235451F});
}

TEST(QAttention, TakesMasks) {
  std::vector<Tensor> inputs = attention_inputs(3);
  const std::vector<float> of_two = {0.739841F, 1.416878F, 0.739625F,
                                     1.417137F, 0.739409F, 1.417396F};
  for (const Tensor& mask : {mask_of({1}, {2}), mask_of({2}, {2, 0}), mask_of({1, 3}, {1, 1, 0}),
                             mask_of({1, 3, 3}, {1, 1, 0, 1, 1, 0, 1, 1, 0})}) {
    inputs[5] = mask;
    expect_attended(run_microsoft("QAttention", one_head(), inputs)[0], of_two);
  }
  inputs[5] = mask_of({2}, {3, 1});
  Attributes attributes = one_head();
  attributes.set("scale", 0.25F);
  expect_attended(run_microsoft("QAttention", attributes, inputs)[0],
                  {1.053858F, 1.040058F, 1.053782F, 1.04015F, 1.053705F, 1.040241F});
  inputs[5] = mask_of({1, 1}, {0});
  expect_attended(run_microsoft("QAttention", one_head(), inputs)[0],
                  {0.89218F, 1.234071F, 0.891605F, 1.234761F, 0.89103F, 1.235451F});
}

TEST(QAttention, ContinuesThePast) {
  std::vector<Tensor> inputs = attention_inputs(1);
  inputs.push_back(floats({2, 1, 1, 1, 2}, {0, 1, 2, 3}));
  const std::vector<Tensor> outputs = run_microsoft("QAttention", one_head(), inputs, 2);
  expect_attended(outputs[0], {1.292892F, 2.300706F});
  EXPECT_THAT(values(outputs[1]),
              ElementsAre(0, 1, 0.1953125F, 0.8828125F, 2, 3, 0.5859375F, 1.6015625F));
}

TEST(QAttention, RefusesWhatDoesNotFit) {
  const auto refusal = [](int64_t heads, Shape weights, Shape mask) {
    return microsoft_refusal("QAttention", attributes_of({{"num_heads", heads}}),
                             {bytewise({2, 3, 4}), bytewise(weights), floating({weights.back()}),
                              floating({}), floating({}), typed(DataType::Int32, std::move(mask))});
  };
  EXPECT_EQ(refusal(2, {4, 12}, {2, 3}), "");
  EXPECT_THAT(refusal(0, {4, 12}, {2}), HasSubstr("'num_heads'"));
  EXPECT_THAT(refusal(3, {4, 12}, {2}), HasSubstr("of 3 heads"));
  EXPECT_THAT(refusal(2, {5, 12}, {2}), HasSubstr("'weight'"));
  EXPECT_THAT(refusal(2, {4, 12}, {3}), HasSubstr("'mask_index'"));
  EXPECT_THAT(refusal(2, {4, 12}, {2, 4}), HasSubstr("'mask_index'"));
  const InferInput mask = typed(DataType::Int32, Shape{2, 1, 5, 5});
  EXPECT_THAT(microsoft_refusal("QAttention", attributes_of({{"num_heads", 2}}),
                                {bytewise({2, 3, 4}), bytewise({4, 12}), floating({12}),
                                 floating({}), floating({}), mask},
                                ErrorKind::Unsupported),
              HasSubstr("four axes"));
}

}  // namespace
}  // namespace tessera::ops
