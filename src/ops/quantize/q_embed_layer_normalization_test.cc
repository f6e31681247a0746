#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Tensor token_list(std::vector<int64_t> dims, const std::vector<int32_t>& ids) {
  return Tensor::from<int32_t>(DataType::Int32, std::move(dims), ids);
}

// Two tokens of two numbers. Without segments.
std::vector<Tensor> embedding_inputs() {
  return {token_list({1, 2}, {1, 0}),
          Tensor(),
          unsigned_bytes({2, 2}, {10, 20, 30, 10}),
          unsigned_bytes({3, 2}, {0, 0, 4, 0, 9, 9}),
          Tensor(),
          unsigned_bytes({2}, {3, 5}),
          unsigned_bytes({2}, {1, 2}),
          token_list({1, 2}, {1, 0}),
          scalar(0.5F),
          scalar(1),
          Tensor(),
          scalar(1),
          scalar(0.25F),
          zero_point(10),
          zero_point(0),
          Tensor(),
          zero_point(1),
          zero_point(0)};
}

TEST(QEmbedLayerNormalization, NormalisesTheSumOfEmbeddings) {
  const std::vector<Tensor> outputs =
      run_microsoft("QEmbedLayerNormalization", {}, embedding_inputs(), 2);
  // (10, 0) + (0, 0) and (0, 5) + (4, 0) are (1, -1) and (-1, 1) after the normalisation; gamma is
  // (2, 4), beta (0.25, 0.5).
  EXPECT_THAT(values(outputs[0]),
              Pointwise(FloatNear(1e-6F), std::vector<float>{2.25F, -3.5F, -1.75F, 4.5F}));
  EXPECT_THAT(outputs[1].as<int32_t>(), ElementsAre(1));
}

TEST(QEmbedLayerNormalization, AddsSegments) {
  std::vector<Tensor> inputs = embedding_inputs();
  inputs[1] = token_list({1, 2}, {0, 1});
  inputs[4] = unsigned_bytes({2, 2}, {0, 11, 9, 0});
  inputs[10] = scalar(1);
  inputs[15] = zero_point(0);
  inputs[7] = Tensor();
  const std::vector<Tensor> outputs = run_microsoft("QEmbedLayerNormalization", {}, inputs, 2);
  // (10, 11) and (13, 5): the signs of both turn.
  EXPECT_THAT(values(outputs[0]),
              Pointwise(FloatNear(1e-6F), std::vector<float>{-1.75F, 4.5F, 2.25F, -3.5F}));
  EXPECT_THAT(outputs[1].as<int32_t>(), ElementsAre(0));
}

TEST(QEmbedLayerNormalization, RefusesWhatDoesNotFit) {
  std::vector<Tensor> inputs = embedding_inputs();
  inputs[0] = token_list({1, 2}, {2, 0});
  const auto run = [&] { run_microsoft("QEmbedLayerNormalization", {}, inputs, 2); };
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument, run), HasSubstr("[0, 2) of an embedding"));
  inputs = embedding_inputs();
  inputs[4] = unsigned_bytes({2, 2}, {0, 11, 9, 0});
  EXPECT_THAT(error_of(ErrorKind::InvalidModel, run), HasSubstr("or none"));
  inputs = embedding_inputs();
  inputs[5] = unsigned_bytes({3}, {0, 11, 9});
  EXPECT_THAT(error_of(ErrorKind::InvalidModel, run), HasSubstr("'gamma_quant'"));
}

}  // namespace
}  // namespace tessera::ops
