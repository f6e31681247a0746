#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;

Attributes split_attributes(const std::string& delimiter, int64_t limit = -1) {
  Attributes attributes;
  if (!delimiter.empty()) attributes.set("delimiter", delimiter);
  if (limit >= 0) attributes.set("maxsplit", limit);
  return attributes;
}

std::vector<Tensor> split(const Tensor& input, const std::string& delimiter, int64_t limit = -1) {
  return run_text({"StringSplit"}, split_attributes(delimiter, limit), {input}, 2);
}

TEST(StringSplit, FillsShortRowsWithEmptyStrings) {
  const std::vector<Tensor> pieces = split(words({"a.b.c", "d", ""}), ".");
  EXPECT_EQ(pieces[0].dims(), (std::vector<int64_t>{3, 3}));
  EXPECT_THAT(texts(pieces[0]), ElementsAre("a", "b", "c", "d", "", "", "", "", ""));
  EXPECT_THAT(pieces[1].as<int64_t>(), ElementsAre(3, 1, 1));
}

TEST(StringSplit, KeepsEmptyPiecesBetweenDelimiters) {
  EXPECT_THAT(texts(split(words({"--a--b--"}), "--")[0]), ElementsAre("", "a", "b", ""));
}

TEST(StringSplit, SplitsAtRunsOfWhiteSpace) {
  const std::vector<Tensor> pieces = split(words({"  a \t b\xC2\xA0 c \n", " ", ""}), "");
  EXPECT_THAT(texts(pieces[0]), ElementsAre("a", "b", "c", "", "", "", "", "", ""));
  EXPECT_THAT(pieces[1].as<int64_t>(), ElementsAre(3, 0, 0));
}

TEST(StringSplit, HasALimit) {
  EXPECT_THAT(texts(split(words({"a.b.c"}), ".", 1)[0]), ElementsAre("a", "b.c"));
  EXPECT_THAT(texts(split(words({" a  b c  "}), "", 1)[0]), ElementsAre("a", "b c"));
  EXPECT_THAT(texts(split(words({" a b "}), "", 0)[0]), ElementsAre("a b"));
  EXPECT_THAT(texts(split(words({"a.b"}), ".", 0)[0]), ElementsAre("a.b"));
}

TEST(StringSplit, HasNoPiecesOfNoStrings) {
  const std::vector<Tensor> pieces = split(strings({2, 0}, {}), ".");
  EXPECT_EQ(pieces[0].dims(), (std::vector<int64_t>{2, 0, 0}));
  EXPECT_EQ(pieces[1].dims(), (std::vector<int64_t>{2, 0}));
}

TEST(StringSplit, HasAnUnknownNumberOfPieces) {
  EXPECT_EQ(text_type({"StringSplit"}, {}, {typed(DataType::String, Shape{2})}),
            "string 2x?node.0.1");
}

}  // namespace
}  // namespace tessera::ops
