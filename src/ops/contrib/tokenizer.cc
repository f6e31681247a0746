// Tokenizer: the words of each string, as rows of equal length. Words are what lies between
// separators, or what a regular expression of RE2 matches.
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/utf8.h"
#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

constexpr const char* kStartOfText = "\x02";
constexpr const char* kEndOfText = "\x03";

RE2::Options tokenizer_options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(true);
  return options;
}

// How a node cuts strings.
struct TokenRule {
  bool takes_characters = false;
  std::vector<std::unique_ptr<RE2>> separators;  // applied one after another
  std::unique_ptr<RE2> token;                    // if there are no separators
  size_t min_characters = 1;
};

TokenRule rule_of(const Node& node) {
  TokenRule rule;
  rule.min_characters = static_cast<size_t>(node.attributes.get_int("mincharnum"));
  const auto* const separators = node.attributes.find_strings("separators");
  const std::string* const token = node.attributes.find_string("tokenexp");
  const auto compiled = [](const std::string& pattern) {
    return std::make_unique<RE2>(pattern, tokenizer_options());
  };
  if (separators != nullptr && !separators->empty()) {
    rule.takes_characters = separators->size() == 1 && separators->front().empty();
    for (const std::string& separator : *separators) {
      rule.separators.push_back(compiled(separator));
    }
  } else if (token != nullptr) {
    rule.takes_characters = *token == ".";
    rule.token = compiled(*token);
  }
  return rule;
}

void check_pattern(const InferContext& context, const char* attribute, const RE2& pattern) {
  if (pattern.ok()) return;
  context.fail(std::string("attribute '") + attribute +
               "': expected a regular expression of RE2, found '" + pattern.pattern() +
               "': " + pattern.error());
}

void infer_tokenizer(InferContext& context) {
  const TokenRule rule = rule_of(context.node());
  const int64_t min_characters = context.node().attributes.get_int("mincharnum");
  if (min_characters < 1 || (rule.takes_characters && min_characters > 1)) {
    context.fail(std::string("attribute 'mincharnum': expected ") +
                 (rule.takes_characters ? "1, because each character is a token"
                                        : "a number of at least 1") +
                 ", found " + std::to_string(min_characters));
  }
  if (rule.separators.empty() && rule.token == nullptr) {
    context.fail("expected attribute 'separators' or 'tokenexp', found none");
  }
  for (const auto& separator : rule.separators) check_pattern(context, "separators", *separator);
  if (rule.token != nullptr) check_pattern(context, "tokenexp", *rule.token);
  const Shape* shape = context.shape(0);
  if (shape != nullptr && shape->size() != 1 && shape->size() != 2) {
    context.fail_input(0, "expected rank 1 or 2, found [" + text(*shape) + "]");
  }
  // Without strings, the output has as many axes as the input.
  if (shape == nullptr || !is_known(*shape)) return context.set_output(0, DataType::String);
  Shape tokens = *shape;
  if (std::ranges::count(*shape, Dim(0)) > 0) {
    tokens.back() = 0;
  } else {
    tokens.push_back(unknown_dim(context, 0, shape->size()));
  }
  context.set_output(0, DataType::String, std::move(tokens));
}

// The number of characters; fail()s if the text is not UTF-8.
size_t count_characters(const ValueCall& call, std::string_view text) {
  size_t count = 0;
  for (size_t begin = 0; begin < text.size(); ++count) {
    const size_t bytes = first_code_point(text.substr(begin)).bytes;
    if (bytes == 0) call.fail("expected strings of UTF-8, found other bytes");
    begin += bytes;
  }
  return count;
}

// The place behind a match of `pattern`, which is at least one character long; and the match.
size_t place_behind(std::string_view text, std::string_view match) {
  const auto begin = static_cast<size_t>(match.data() - text.data());
  if (!match.empty() || begin >= text.size()) return begin + match.size();
  return begin + std::max<size_t>(1, first_code_point(text.substr(begin)).bytes);
}

using Tokens = std::vector<std::string_view>;

// Calls visit(match) for each match, from left to right; empty ones cost the next character.
// Returns where the text behind the last one begins.
template <class Visit>
size_t for_each_match(const RE2& pattern, std::string_view text, const Visit& visit) {
  size_t place = 0;
  re2::StringPiece found;
  while (place < text.size() && pattern.Match({text.data(), text.size()}, place, text.size(),
                                              RE2::UNANCHORED, &found, 1)) {
    const std::string_view match(found.data(), found.size());
    visit(place, match);
    place = place_behind(text, match);
  }
  return std::min(place, text.size());
}

Tokens split_by(const RE2& separator, const Tokens& pieces) {
  Tokens result;
  for (const std::string_view piece : pieces) {
    const size_t rest = for_each_match(separator, piece, [&](size_t begin, std::string_view match) {
      const auto end = static_cast<size_t>(match.data() - piece.data());
      if (end > begin) result.push_back(piece.substr(begin, end - begin));
    });
    if (rest < piece.size()) result.push_back(piece.substr(rest));
  }
  return result;
}

Tokens characters_of(std::string_view text) {
  Tokens result;
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(1, first_code_point(text).bytes);
    result.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return result;
}

Tokens tokens_of(const ValueCall& call, const TokenRule& rule, std::string_view text) {
  count_characters(call, text);
  if (rule.takes_characters) return characters_of(text);
  Tokens tokens;
  if (rule.token != nullptr) {
    for_each_match(*rule.token, text,
                   [&](size_t, std::string_view match) { tokens.push_back(match); });
  } else {
    tokens.push_back(text);
    for (const auto& separator : rule.separators) tokens = split_by(*separator, tokens);
  }
  std::erase_if(tokens, [&](std::string_view token) {
    return count_characters(call, token) < std::max<size_t>(1, rule.min_characters);
  });
  return tokens;
}

void run_tokenizer(const ValueCall& call) {
  const auto rule = call.prepared<TokenRule>([&] { return rule_of(call.node); });
  const Tensor& input = call.inputs[0];
  std::vector<Tokens> all;
  int64_t longest = 0;
  for (const std::string& text : input.as<std::string>()) {
    all.push_back(tokens_of(call, *rule, text));
    longest = std::max<int64_t>(longest, std::ssize(all.back()));
  }
  std::vector<int64_t> dims = input.dims();
  if (all.empty()) {
    dims.back() = 0;
    call.outputs[0] = Tensor::strings(std::move(dims), {});
    return;
  }
  const bool is_marked = call.node.attributes.get_int("mark") != 0 && longest > 0;
  const int64_t width = longest + (is_marked ? 2 : 0);
  dims.push_back(width);
  std::vector<std::string> strings;
  strings.reserve(all.size() * static_cast<size_t>(width));
  for (size_t row = 0; row < all.size(); ++row) {
    if (is_marked) strings.emplace_back(kStartOfText);
    strings.insert(strings.end(), all[row].begin(), all[row].end());
    if (is_marked) strings.emplace_back(kEndOfText);
    strings.resize((row + 1) * static_cast<size_t>(width),
                   call.node.attributes.get_string("pad_value"));
  }
  call.outputs[0] = Tensor::strings(std::move(dims), std::move(strings));
}

}  // namespace

std::vector<Op> tokenizer_ops() {
  const auto required = [](const char* name, AttributeKind kind) {
    return AttributeSchema{name, kind, std::nullopt, 1, kAnyVersion, true};
  };
  return {{.name = "Tokenizer",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kStringType}},
           .attributes = {required("mark", AttributeKind::Int),
                          required("mincharnum", AttributeKind::Int),
                          required("pad_value", AttributeKind::String),
                          {"separators", AttributeKind::Strings},
                          {"tokenexp", AttributeKind::String}},
           .infer = infer_tokenizer,
           .value_kernel = run_tokenizer}};
}

}  // namespace tessera::ops
