#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

Attributes reversal(int64_t batch_axis, int64_t time_axis) {
  return attributes_of({{"batch_axis", batch_axis}, {"time_axis", time_axis}});
}

// The examples of ONNX.
TEST(ReverseSequence, ReversesTheBeginOfEachSequence) {
  const Tensor columns = floats({4, 4}, {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15});
  EXPECT_THAT(values(run_op("ReverseSequence", 10, {}, {columns, ints({4, 3, 2, 1})})[0]),
              ElementsAre(3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15));
  const Tensor rows = floats({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  EXPECT_THAT(values(run_op("ReverseSequence", 28, reversal(0, 1), {rows, ints({1, 2, 3, 4})})[0]),
              ElementsAre(0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12));
}

TEST(ReverseSequence, MovesWholeSlicesOfAnyType) {
  const Tensor input = ints({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_THAT(integers(run_op("ReverseSequence", 10, {}, {input, ints({2})})[0]),
              ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(integers(run_op("ReverseSequence", 10, {}, {input, ints({0})})[0]),
              ElementsAre(1, 2, 3, 4));
  const Tensor none = run_op("ReverseSequence", 10, {}, {floats({2, 0}, {}), ints({0}, {})})[0];
  EXPECT_EQ(none.elements(), 0);
}

TEST(ReverseSequence, RefusesWrongLengthsAndAxes) {
  const Tensor input = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(refusal("ReverseSequence", 10, {}, {input, ints({3, 1})}),
              HasSubstr("lengths in [0, 2], found 3"));
  EXPECT_THAT(refusal("ReverseSequence", 10, {}, {input, ints({1, -1})}), HasSubstr("found -1"));
  EXPECT_THAT(refusal("ReverseSequence", 10, {}, {input, ints({1})}),
              HasSubstr("each of 2 entries of the batch, found 1"));
  EXPECT_THAT(refusal("ReverseSequence", 10, {}, {floats({2}, {1, 2}), ints({1, 1})}),
              HasSubstr("rank 2 or more"));
  for (const auto& [batch_axis, time_axis] : {std::pair{0, 0}, std::pair{2, -1}}) {
    EXPECT_THAT(
        refusal("ReverseSequence", 10, reversal(batch_axis, time_axis), {input, ints({1, 1})}),
        HasSubstr("expected 0 and 1"));
  }
}

}  // namespace
}  // namespace tessera::ops
