#include "ops/matmul/einsum_equation.h"

#include <algorithm>
#include <array>

namespace tessera::ops {
namespace {

constexpr std::string_view kDots = "...";
constexpr std::string_view kArrow = "->";

// The index of a letter, capitals first; -1: no letter.
int letter_index(char symbol) {
  if (symbol >= 'A' && symbol <= 'Z') return symbol - 'A';
  if (symbol >= 'a' && symbol <= 'z') return 26 + symbol - 'a';
  return -1;
}

std::string letter_of(int index) {
  return {static_cast<char>(index < 26 ? 'A' + index : 'a' + index - 26)};
}

int64_t count_letters(std::string_view term) {
  return std::ranges::count_if(term, [](char symbol) { return letter_index(symbol) >= 0; });
}

// Appends the indices of a term, in which "..." stands for `dotted` axes.
std::string read_term(std::string_view term, int64_t dotted, std::pmr::vector<int>& indices) {
  bool has_dots = false;
  for (size_t place = 0; place < term.size(); ++place) {
    const char symbol = term[place];
    if (symbol == ' ') continue;
    if (const int letter = letter_index(symbol); letter >= 0) {
      indices.push_back(letter);
      continue;
    }
    if (has_dots || !term.substr(place).starts_with(kDots)) {
      return "expected letters and at most one '...', found '" + std::string(term) + "'";
    }
    has_dots = true;
    place += kDots.size() - 1;
    for (int64_t axis = dotted; axis-- > 0;) {
      indices.push_back(kEinsumLetters + static_cast<int>(axis));
    }
  }
  return "";
}

bool contains(std::span<const int> indices, int index) {
  return std::ranges::find(indices, index) != indices.end();
}

// All axes that any "..." stands for, then the letters that occur once, in their order.
void set_implicit_output(int64_t dotted, EinsumEquation& equation) {
  for (int64_t axis = dotted; axis-- > 0;) {
    equation.output.push_back(kEinsumLetters + static_cast<int>(axis));
  }
  std::array<int, kEinsumLetters> uses = {};
  for (const auto& operand : equation.operands) {
    for (const int index : operand) {
      if (index < kEinsumLetters) ++uses[static_cast<size_t>(index)];
    }
  }
  for (int letter = 0; letter < kEinsumLetters; ++letter) {
    if (uses[static_cast<size_t>(letter)] == 1) equation.output.push_back(letter);
  }
}

std::string read_output(std::string_view term, int64_t dotted, EinsumEquation& equation) {
  if (std::string wrong = read_term(term, dotted, equation.output); !wrong.empty()) return wrong;
  if (dotted > 0 && !contains(equation.output, kEinsumLetters)) {
    return "expected '...' in the result '" + std::string(term) + "', because an input has it";
  }
  for (size_t axis = 0; axis < equation.output.size(); ++axis) {
    const int index = equation.output[axis];
    const std::span<const int> before(equation.output.data(), axis);
    if (contains(before, index)) {
      return "expected each letter once in the result, found '" + letter_of(index) + "' twice";
    }
    const bool is_known = std::ranges::any_of(
        equation.operands, [&](const auto& operand) { return contains(operand, index); });
    if (!is_known) {
      return "expected letters of the inputs in the result, found '" + letter_of(index) + "'";
    }
  }
  return "";
}

}  // namespace

std::string read_einsum(std::string_view text, std::span<const int64_t> ranks,
                        EinsumEquation& equation) {
  const size_t arrow = text.find(kArrow);
  const std::string_view terms = text.substr(0, arrow);
  const auto count = static_cast<size_t>(std::ranges::count(terms, ',')) + 1;
  if (count != ranks.size()) {
    return "expected as many terms as inputs, " + std::to_string(ranks.size()) + ", found " +
           std::to_string(count);
  }
  int64_t most_dotted = 0;
  size_t begin = 0;
  for (const int64_t rank : ranks) {
    const size_t end = std::min(terms.find(',', begin), terms.size());
    const std::string_view term = terms.substr(begin, end - begin);
    std::pmr::vector<int>& indices = equation.operands.emplace_back();
    const int64_t dotted = std::max<int64_t>(rank - count_letters(term), 0);
    if (std::string wrong = read_term(term, dotted, indices); !wrong.empty()) return wrong;
    if (static_cast<int64_t>(indices.size()) != rank) {
      return "expected a letter for each of the " + std::to_string(rank) + " axes of input " +
             std::to_string(equation.operands.size() - 1) + ", found '" + std::string(term) + "'";
    }
    if (term.find('.') != std::string_view::npos) most_dotted = std::max(most_dotted, dotted);
    begin = end + 1;
  }
  if (arrow != std::string_view::npos) {
    return read_output(text.substr(arrow + kArrow.size()), most_dotted, equation);
  }
  set_implicit_output(most_dotted, equation);
  return "";
}

}  // namespace tessera::ops
