#include "ops/on_ranks.h"

#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

const Tensor kFruits = words({"pear", "apple", "", "pear"});

TEST(OnRanks, MovesStringsLikeNumbers) {
  EXPECT_THAT(texts(run_text({"Gather"}, {}, {kFruits, ints({3}, {3, 1, -2})})[0]),
              ElementsAre("pear", "apple", ""));
  EXPECT_THAT(texts(run_text({"Concat"}, attributes_of({{"axis", 0}}), {kFruits, words({"x"})})[0]),
              ElementsAre("pear", "apple", "", "pear", "x"));
  const Tensor matrix = run_text({"Reshape"}, {}, {kFruits, ints({2}, {2, -1})})[0];
  EXPECT_EQ(matrix.dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_THAT(texts(run_text({"Transpose"}, {}, {matrix})[0]),
              ElementsAre("pear", "", "apple", "pear"));
  EXPECT_THAT(texts(run_text({"Tile"}, {}, {words({"a", "b"}), ints({1}, {2})})[0]),
              ElementsAre("a", "b", "a", "b"));
}

TEST(OnRanks, ComparesStrings) {
  const Tensor equal = run_text({"Equal"}, {}, {kFruits, strings({}, {"pear"})})[0];
  EXPECT_EQ(equal.type(), DataType::Bool);
  EXPECT_THAT(bytes(equal), ElementsAre(1, 0, 0, 1));
}

TEST(OnRanks, ChoosesAmongStrings) {
  const Tensor condition = Tensor::from<bool>(DataType::Bool, {2}, std::array{true, false});
  EXPECT_THAT(texts(run_text({"Where"}, {}, {condition, words({"a", "b"}), words({"c", "d"})})[0]),
              ElementsAre("a", "d"));
}

TEST(OnRanks, FillsWithEmptyStrings) {
  EXPECT_THAT(texts(run_text({"Pad"}, {}, {words({"a"}), ints({2}, {1, 1})})[0]),
              ElementsAre("", "a", ""));
  EXPECT_THAT(
      texts(run_text({"Pad"}, {}, {words({"a"}), ints({2}, {0, 1}), strings({}, {"fill"})})[0]),
      ElementsAre("a", "fill"));
}

TEST(OnRanks, CountsEmptyStringsAsZero) {
  const Tensor found = run_text({"NonZero"}, {}, {kFruits})[0];
  EXPECT_EQ(found.dims(), (std::vector<int64_t>{1, 3}));
}

TEST(OnRanks, SplitsStrings) {
  const std::vector<Tensor> parts =
      run_text({"Split", 13}, attributes_of({{"axis", 0}}), {kFruits}, 2);
  EXPECT_THAT(texts(parts[0]), ElementsAre("pear", "apple"));
  EXPECT_THAT(texts(parts[1]), ElementsAre("", "pear"));
}

TEST(OnRanks, TakesNoStrings) {
  EXPECT_TRUE(texts(run_text({"Gather"}, {}, {kFruits, ints({0}, {})})[0]).empty());
}

}  // namespace
}  // namespace tessera::ops
