#include "ops/contrib/contrib_test.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

Attributes tokenizer(int64_t mark, int64_t min_characters = 1) {
  return attributes_of({{"mark", mark}, {"mincharnum", min_characters}, {"pad_value", "#"}});
}

Attributes with_separators(Attributes given, std::vector<std::string> separators) {
  given.set("separators", std::move(separators));
  return given;
}

Attributes with_token(Attributes given, const std::string& token) {
  given.set("tokenexp", token);
  return given;
}

Tensor tokens(const Attributes& given, const Tensor& input) {
  const Node node = make_node(all_ops(), "Tokenizer", 1, given, {true}, 1, kMicrosoftDomain);
  std::vector<Tensor> outputs(1);
  run_on_values(all_ops().of(node), {node, std::span(&input, 1), outputs});
  return outputs[0];
}

std::vector<std::string> words(const Attributes& given, const std::string& text) {
  const Tensor found = tokens(given, Tensor::strings({1}, {text}));
  const auto elements = found.as<std::string>();
  return {elements.begin(), elements.end()};
}

TEST(Tokenizer, SplitsAtSeparatorsOneAfterAnother) {
  EXPECT_THAT(words(with_separators(tokenizer(0), {" "}), "ab  c "), ElementsAre("ab", "c"));
  EXPECT_THAT(words(with_separators(tokenizer(0), {"b", "aab"}), "aabbaab"),
              ElementsAre("aa", "aa"));
  EXPECT_THAT(words(with_separators(tokenizer(0), {"aab", "b"}), "aabbaab"), IsEmpty());
  EXPECT_THAT(words(with_separators(tokenizer(0), {"a|ab"}), "abab b"), ElementsAre(" b"));
  EXPECT_THAT(words(with_separators(tokenizer(0, 2), {" "}), "h\xC3\xA9 a \xC3\xA9"),
              ElementsAre("h\xC3\xA9"));
}

TEST(Tokenizer, TakesMatchesOrCharacters) {
  EXPECT_THAT(words(with_token(tokenizer(0), "a|ab"), "abab"), ElementsAre("ab", "ab"));
  EXPECT_THAT(words(with_token(tokenizer(0), "[a-z]*"), "hi 12 you3"), ElementsAre("hi", "you"));
  EXPECT_THAT(words(with_token(tokenizer(0), "."), "h\xC3\xA9"), ElementsAre("h", "\xC3\xA9"));
  EXPECT_THAT(words(with_separators(tokenizer(0), {""}), "ab"), ElementsAre("a", "b"));
}

TEST(Tokenizer, MarksAndPadsRows) {
  const Tensor rows =
      tokens(with_separators(tokenizer(1), {" "}), Tensor::strings({1, 2}, {"a b", ""}));
  EXPECT_THAT(rows.dims(), ElementsAre(1, 2, 4));
  EXPECT_THAT(rows.as<std::string>(),
              ElementsAre("\x02", "a", "b", "\x03", "\x02", "\x03", "#", "#"));
  const auto dims = [](std::vector<int64_t> sizes, std::vector<std::string> texts) {
    return tokens(with_separators(tokenizer(1), {" "}),
                  Tensor::strings(std::move(sizes), std::move(texts)))
        .dims();
  };
  EXPECT_THAT(dims({2}, {"", " "}), ElementsAre(2, 0));
  EXPECT_THAT(dims({0}, {}), ElementsAre(0));
  EXPECT_THAT(dims({2, 0}, {}), ElementsAre(2, 0));
}

TEST(Tokenizer, RefusesWhatItCannotCut) {
  const auto refusal_of = [](const Attributes& given, Shape shape = {1}) {
    return error_of(
        [&] { contrib_type("Tokenizer", given, {typed(DataType::String, std::move(shape))}); });
  };
  EXPECT_THAT(refusal_of(tokenizer(0)), HasSubstr("'separators' or 'tokenexp'"));
  EXPECT_THAT(refusal_of(with_token(tokenizer(0), "(")), HasSubstr("regular expression"));
  EXPECT_THAT(refusal_of(with_token(tokenizer(0, 2), ".")), HasSubstr("each character"));
  EXPECT_THAT(refusal_of(with_token(tokenizer(0, 0), "a")), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(refusal_of(with_token(tokenizer(0), "a"), {1, 1, 1}), HasSubstr("rank 1 or 2"));
  EXPECT_THAT(error_of([&] { words(with_token(tokenizer(0), "a"), "\xFF"); }),
              HasSubstr("strings of UTF-8"));
}

}  // namespace
}  // namespace tessera::ops
