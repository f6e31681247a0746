#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

Attributes of_length(int64_t length) { return attributes_of({{"ngram_size", length}}); }

TEST(NGramRepeatBlock, BlocksWhatWouldRepeat) {
  const auto run = [](int64_t length) {
    return values(run_contrib("NGramRepeatBlock", of_length(length),
                              {ints({1, 5}, {1, 2, 1, 3, 1}), floats({1, 4}, {0, 1, 2, 3})})[0]);
  };
  EXPECT_THAT(run(1), ElementsAre(0, -kInfinity, -kInfinity, -kInfinity));
  EXPECT_THAT(run(2), ElementsAre(0, 1, -kInfinity, -kInfinity));
  EXPECT_THAT(run(3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(run(kLargest), ElementsAre(0, 1, 2, 3));
}

TEST(NGramRepeatBlock, RefusesUnknownTokens) {
  const auto refusal_of = [](int64_t length, const Tensor& scores) {
    return contrib_refusal("NGramRepeatBlock", of_length(length), {ints({1, 2}, {9, 9}), scores});
  };
  EXPECT_THAT(refusal_of(2, floats({1, 2}, {0, 0})), HasSubstr("tokens in [0, 2)"));
  EXPECT_THAT(refusal_of(0, floats({1, 2}, {0, 0})), HasSubstr("'ngram_size' of at least 1"));
  EXPECT_THAT(refusal_of(2, floats({2, 1}, {0, 0})), HasSubstr("expected shape [1x1]"));
}

}  // namespace
}  // namespace tessera::ops
