#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

Attributes scatter_mode(const std::string& mode) {
  return attributes_of({{"mode", mode}, {"axis", int64_t{1}}});
}

TEST(TensorScatter, WritesFromTheIndexOfEachBatch) {
  const auto outputs =
      run_op("TensorScatter", 24, scatter_mode("linear"),
             {ints({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2, 2}, {10, 20, 30, 40}), ints({2}, {0, 1})});
  EXPECT_THAT(integers(outputs[0]), ElementsAre(10, 20, 3, 4, 30, 40));
}

TEST(TensorScatter, GoesOnAtTheStartIfItIsCircular) {
  const auto outputs = run_op("TensorScatter", 24, scatter_mode("circular"),
                              {ints({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2, 2}, {10, 20, 30, 40}),
                               ints({2}, {5, kSmallest})});
  // The smallest number is 1 modulo 3.
  EXPECT_THAT(integers(outputs[0]), ElementsAre(20, 2, 10, 4, 30, 40));
}

TEST(TensorScatter, WritesToTheStartWithoutIndices) {
  const auto outputs = run_op("TensorScatter", 24, {},
                              {floats({1, 3, 2}, {1, 2, 3, 4, 5, 6}), floats({1, 1, 2}, {7, 8})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(7, 8, 3, 4, 5, 6));
  const auto none =
      run_op("TensorScatter", 24, {}, {bools({1, 1, 2}, {1, 0}), bools({1, 0, 2}, {})});
  EXPECT_THAT(bytes(none[0]), ElementsAre(1, 0));
}

TEST(TensorScatter, RefusesWhatDoesNotFit) {
  const Tensor cache = zeros({1, 3});
  const auto refused = [&](Attributes given, const Tensor& update, const Tensor& indices) {
    return refusal("TensorScatter", 24, std::move(given), {cache, update, indices});
  };
  EXPECT_THAT(refused(scatter_mode("linear"), zeros({1, 2}), ints({1}, {2})),
              HasSubstr("expected numbers in [0, 1], so that 2 positions fit into 3, found 2"));
  EXPECT_THAT(refused(scatter_mode("linear"), zeros({1, 2}), ints({1}, {-1})),
              HasSubstr("found -1"));
  EXPECT_THAT(refused(scatter_mode("linear"), zeros({1, 4}), ints({1}, {0})),
              HasSubstr("at most 3"));
  EXPECT_THAT(refused(scatter_mode("linear"), zeros({2, 2}), ints({1}, {0})), HasSubstr("1x2"));
  EXPECT_THAT(refused(scatter_mode("linear"), zeros({1, 2}), ints({2}, {0, 0})), HasSubstr("[1]"));
  EXPECT_THAT(refused(scatter_mode("ring"), zeros({1, 2}), ints({1}, {0})), HasSubstr("'ring'"));
  EXPECT_THAT(refused({}, zeros({1, 2}), ints({1}, {0})), HasSubstr("that of the batch"));
}

}  // namespace
}  // namespace tessera::ops
