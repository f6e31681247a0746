#include "ops/attention/attention_test.h"

namespace tessera::ops {
namespace {

// Angles of 0 and 90 degrees, for positions 0 and 1.
const Tensor& cosines() {
  static const Tensor kCosines = floats({2, 1}, {1, 0});
  return kCosines;
}
const Tensor& sines() {
  static const Tensor kSines = floats({2, 1}, {0, 1});
  return kSines;
}

TEST(RotaryEmbedding, RotatesPairsByTheAngleOfThePosition) {
  // [batch 1, heads 1, positions 2, size 2]: (x, y) becomes (-y, x) at position 1.
  const Tensor input = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const auto outputs =
      run_op("RotaryEmbedding", 23, {}, {input, cosines(), sines(), ints({1, 2}, {0, 1})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(1, 2, -4, 3));
  const auto swapped =
      run_op("RotaryEmbedding", 23, {}, {input, cosines(), sines(), ints({1, 2}, {1, -2})});
  EXPECT_THAT(values(swapped[0]), ElementsAre(-2, 1, 3, 4));
}

TEST(RotaryEmbedding, PairsAreHalvesOrNeighbours) {
  const Tensor cosine = floats({1, 1, 2}, {0, 0});
  const Tensor sine = floats({1, 1, 2}, {1, 1});
  const Tensor input = floats({1, 1, 4}, {1, 2, 3, 4});
  const auto run = [&](int64_t is_interleaved) {
    const auto given = attributes_of({{"interleaved", is_interleaved}, {"num_heads", int64_t{1}}});
    return values(run_op("RotaryEmbedding", 23, given, {input, cosine, sine})[0]);
  };
  EXPECT_THAT(run(0), ElementsAre(-3, -4, 1, 2));
  EXPECT_THAT(run(1), ElementsAre(-2, 1, -4, 3));
}

TEST(RotaryEmbedding, ElementsBeyondThoseThatAreRotatedStay) {
  const auto outputs =
      run_op("RotaryEmbedding", 23, attributes_of({{"rotary_embedding_dim", int64_t{2}}}),
             {floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1}, {0}), floats({1, 1, 1}, {1})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(-2, 1, 3, 4));
}

TEST(RotaryEmbedding, OfMicrosoftTakesTheFirstPosition) {
  // Without a number of heads, they are as large as the angles say.
  const auto outputs = run_microsoft(
      "RotaryEmbedding", {}, {floats({1, 1, 4}, {1, 2, 3, 4}), ints({1}, {1}), cosines(), sines()});
  EXPECT_THAT(values(outputs[0]), ElementsAre(-2, 1, -4, 3));
  EXPECT_THAT(microsoft_refusal("RotaryEmbedding", {},
                                {zeros({1, 2, 4}), ints({1}, {1}), cosines(), sines()}),
              HasSubstr("expected a first position in [0, 0], found 1"));
  EXPECT_THAT(
      microsoft_refusal("RotaryEmbedding", attributes_of({{"rotary_embedding_dim", int64_t{2}}}),
                        {zeros({1, 1, 4}), ints({1}, {1}), cosines(), sines()}),
      HasSubstr("'num_heads', which 'rotary_embedding_dim' needs"));
}

TEST(RotaryEmbedding, RefusesWhatDoesNotFit) {
  const auto refused = [&](Attributes given, const std::vector<Tensor>& inputs) {
    return refusal("RotaryEmbedding", 23, std::move(given), inputs);
  };
  const Tensor ids = ints({1, 1}, {0});
  EXPECT_THAT(refused({}, {zeros({1, 2}), cosines(), sines(), ids}),
              HasSubstr("3 or 4 dimensions"));
  EXPECT_THAT(refused({}, {zeros({1, 1, 2}), cosines(), sines(), ids}), HasSubstr("'num_heads'"));
  EXPECT_THAT(refused({}, {zeros({1, 1, 1, 3}), cosines(), sines(), ids}), HasSubstr("even size"));
  EXPECT_THAT(refused({}, {zeros({1, 1, 1, 4}), cosines(), sines(), ids}),
              HasSubstr("expected 2 numbers in a row"));
  EXPECT_THAT(refused({}, {zeros({1, 1, 1, 2}), cosines(), sines()}), HasSubstr("3 dimensions"));
  EXPECT_THAT(refused({}, {zeros({1, 1, 1, 2}), cosines(), sines(), ints({1, 1}, {2})}),
              HasSubstr("expected an index in [-2, 2), found 2"));
  EXPECT_THAT(refused(attributes_of({{"rotary_embedding_dim", int64_t{4}}}),
                      {zeros({1, 1, 1, 2}), cosines(), sines(), ids}),
              HasSubstr("at most 2"));
}

}  // namespace
}  // namespace tessera::ops
