#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 1-grams 2, 3, 5, 4 and 2-grams (5, 6), (7, 8), (6, 7), whose counts are at these positions.
Attributes bigrams(const std::string& mode, int64_t shortest, int64_t longest, int64_t skips) {
  Attributes attributes;
  attributes.set("mode", mode);
  attributes.set("min_gram_length", shortest);
  attributes.set("max_gram_length", longest);
  attributes.set("max_skip_count", skips);
  attributes.set("ngram_counts", std::vector<int64_t>{0, 4});
  attributes.set("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
  attributes.set("pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7});
  return attributes;
}

const Tensor kRow = ints({12}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});

std::vector<float> counted(const Attributes& attributes, const Tensor& input = kRow) {
  return values(run_text({"TfIdfVectorizer"}, attributes, {input})[0]);
}

TEST(TfIdfVectorizer, CountsNGrams) {
  EXPECT_THAT(counted(bigrams("TF", 2, 2, 0)), ElementsAre(0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(counted(bigrams("TF", 1, 2, 0)), ElementsAre(0, 3, 1, 0, 1, 1, 1));
  EXPECT_THAT(counted(bigrams("TF", 1, 1, 3)), ElementsAre(0, 3, 1, 0, 0, 0, 0));
}

TEST(TfIdfVectorizer, SkipsWords) {
  // (7, 8) at distance 1; (7, _, _, _, _, _, 8) at distance 6 is too far; (5, 6) once.
  EXPECT_THAT(counted(bigrams("TF", 2, 2, 5)), ElementsAre(0, 0, 0, 0, 1, 3, 1));
}

TEST(TfIdfVectorizer, Weighs) {
  Attributes attributes = bigrams("TFIDF", 1, 2, 0);
  attributes.set("weights", std::vector<float>{1, 10, 2, 1, 3, 4, 5});
  EXPECT_THAT(counted(attributes), ElementsAre(0, 30, 2, 0, 3, 4, 5));
  attributes.set("mode", std::string("IDF"));
  EXPECT_THAT(counted(attributes), ElementsAre(0, 10, 2, 0, 3, 4, 5));
  EXPECT_THAT(counted(bigrams("IDF", 1, 2, 0)), ElementsAre(0, 1, 1, 0, 1, 1, 1));
}

TEST(TfIdfVectorizer, CountsEachRow) {
  const Tensor counts =
      run_text({"TfIdfVectorizer"}, bigrams("TF", 1, 1, 0), {ints({2, 2}, {2, 2, 3, 9})})[0];
  EXPECT_EQ(counts.dims(), (std::vector<int64_t>{2, 7}));
  EXPECT_THAT(values(counts), ElementsAre(2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(counted(bigrams("TF", 1, 2, 0), ints({0}, {})), ElementsAre(0, 0, 0, 0, 0, 0, 0));
}

// What one row counted does not meet the next one, and n-grams may have one position.
TEST(TfIdfVectorizer, CountsManyRows) {
  Attributes attributes = bigrams("TF", 1, 2, 1);
  attributes.set("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 0, 5, 1});
  constexpr int64_t kRows = 300;
  std::vector<int64_t> all;
  std::vector<float> expected;
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<int64_t> numbers;
    for (int64_t at = 0; at < 9; ++at) numbers.push_back((row * 5 + at * (row % 4 + 1)) % 10 - 1);
    all.insert(all.end(), numbers.begin(), numbers.end());
    const std::vector<float> alone = counted(attributes, ints({9}, numbers));
    expected.insert(expected.end(), alone.begin(), alone.end());
  }
  EXPECT_EQ(counted(attributes, ints({kRows, 9}, all)), expected);
}

TEST(TfIdfVectorizer, CountsWords) {
  Attributes attributes = bigrams("TF", 1, 2, 0);
  attributes.set("ngram_counts", std::vector<int64_t>{0, 1});
  attributes.set("ngram_indexes", std::vector<int64_t>{1, 0});
  attributes.erase("pool_int64s");
  attributes.set("pool_strings", std::vector<std::string>{"a", "a", "b"});
  EXPECT_THAT(counted(attributes, words({"a", "b", "x", "a", "b"})), ElementsAre(2, 2));
}

TEST(TfIdfVectorizer, RefusesAPoolThatDoesNotFit) {
  const std::vector<InferInput> row = {typed(DataType::Int64, Shape{3})};
  const auto error = [&](const std::string& name, Attribute value) {
    Attributes attributes = bigrams("TF", 1, 2, 0);
    attributes.set(name, std::move(value));
    return text_error({"TfIdfVectorizer"}, attributes, row);
  };
  EXPECT_THAT(error("ngram_counts", std::vector<int64_t>{0, 5}), HasSubstr("'ngram_counts'"));
  EXPECT_THAT(error("ngram_counts", std::vector<int64_t>{0, 99}), HasSubstr("'ngram_counts'"));
  EXPECT_THAT(error("ngram_indexes", std::vector<int64_t>{0}), HasSubstr("'ngram_indexes'"));
  EXPECT_THAT(error("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, -1}),
              HasSubstr("found -1"));
  EXPECT_THAT(error("weights", std::vector<float>{1}), HasSubstr("'weights'"));
  EXPECT_THAT(error("mode", std::string("BM25")), HasSubstr("found 'BM25'"));
  EXPECT_THAT(error("min_gram_length", int64_t{0}), HasSubstr("found 0 and 2"));
  EXPECT_THAT(error("max_skip_count", int64_t{-1}), HasSubstr("found -1"));
  EXPECT_THAT(error("pool_strings", std::vector<std::string>{"a"}), HasSubstr("found both"));
  EXPECT_THAT(
      text_error({"TfIdfVectorizer"}, bigrams("TF", 1, 2, 0), {typed(DataType::String, Shape{3})}),
      HasSubstr("expected elements like those of the pool, found string"));
}

}  // namespace
}  // namespace tessera::ops
