#include "infer/merge_types.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tessera {
namespace {

bool is_word_character(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

bool contains_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_word_character(text[at - 1]);
    const bool ends = end == text.size() || !is_word_character(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

bool derives_from(const std::string& symbol, const std::set<std::string>& input_symbols) {
  // A digest hides the symbols in it. Treating it as derived from inputs is safe: the dimension
  // merely stays unknown longer.
  if (symbol.starts_with("~")) return true;
  return std::any_of(input_symbols.begin(), input_symbols.end(),
                     [&](const std::string& input) { return contains_word(symbol, input); });
}

// False if the two contradict.
bool merge_shapes(const std::optional<Shape>& declared, std::optional<Shape>& inferred,
                  const std::set<std::string>& input_symbols) {
  if (!inferred) inferred = declared;
  if (!declared) return true;
  if (declared->size() != inferred->size()) return false;
  for (size_t axis = 0; axis < declared->size(); ++axis) {
    const Dim& dim = (*inferred)[axis];
    if ((*declared)[axis].is_known() && dim.is_known() && (*declared)[axis] != dim) return false;
  }
  for (size_t axis = 0; axis < declared->size(); ++axis) {
    Dim& dim = (*inferred)[axis];
    if (dim.is_known() || !(*declared)[axis].is_known()) continue;
    if (!derives_from(dim.symbol(), input_symbols)) dim = (*declared)[axis];
  }
  return true;
}

}  // namespace

MergedType merge_types(const Type& declared, const Type& inferred,
                       const std::set<std::string>& input_symbols) {
  using Outcome = MergedType::Outcome;
  if (inferred.kind == Type::Kind::Unknown) return {declared, Outcome::Agrees};
  if (declared.kind == Type::Kind::Unknown) return {inferred, Outcome::Agrees};
  if (declared.kind != inferred.kind) return {inferred, Outcome::ElementContradicts};
  if (!inferred.is_tensor()) {
    return {inferred, declared == inferred ? Outcome::Agrees : Outcome::ElementContradicts};
  }
  MergedType merged = {inferred, Outcome::Agrees};
  DataType& element = merged.type.element;
  if (element == DataType::Undefined) element = declared.element;
  if (declared.element != DataType::Undefined && declared.element != element) {
    merged.outcome = Outcome::ElementContradicts;
  } else if (!merge_shapes(declared.shape, merged.type.shape, input_symbols)) {
    merged.outcome = Outcome::ShapeContradicts;
  }
  return merged;
}

}  // namespace tessera
