#include "graph/dim_names.h"

#include <algorithm>

#include "base/errors/check.h"

namespace tessera {
namespace {

// Between a name and its number. It is in no identifier.
constexpr char kMark = '\'';

// Bytes outside of ASCII are letters of other alphabets.
bool is_letter(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         character == '_' || static_cast<unsigned char>(character) >= 0x80;
}

bool is_digit(char character) { return character >= '0' && character <= '9'; }

}  // namespace

bool is_dim_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [](char character) {
    return is_letter(character) || is_digit(character);
  });
}

Dim DimNames::next(const std::string& name) {
  TESSERA_CHECK(is_dim_name(name), "only dimensions with names are numbered");
  const int number = ++counts_[name];
  return Dim::symbol(number == 1 ? name : name + kMark + std::to_string(number));
}

std::string name_of(const Dim& dim) {
  const std::string_view symbol = dim.symbol();
  const size_t mark = symbol.find(kMark);
  const std::string_view name = symbol.substr(0, mark);
  if (!is_dim_name(name)) return {};
  if (mark == std::string_view::npos) return std::string(name);
  const std::string_view number = symbol.substr(mark + 1);
  const bool is_number = !number.empty() && std::ranges::all_of(number, is_digit);
  return is_number ? std::string(name) : "";
}

std::string quoted_for_symbol(std::string_view name) {
  // Not '/', which many names have: quotients are always in parentheses.
  if (name.find_first_of("+-*(),\"") == std::string_view::npos) return std::string(name);
  std::string quoted = "\"";
  for (const char each : name) {
    quoted += each;
    if (each == '"') quoted += each;
  }
  quoted += '"';
  return quoted;
}

std::string shown_text(const Dim& dim) {
  const std::string text = dim.text();
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == kMark) {
      while (end < text.size() && is_digit(text[end])) ++end;
    }
    const bool is_number = end > at + 1;
    if (!is_number) shown += text[at];
    at = end;
  }
  return shown;
}

}  // namespace tessera
