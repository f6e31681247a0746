#include "base/errors/likely_name.h"

#include <algorithm>
#include <tuple>

namespace tessera {
namespace {

// Longer names are compared by their prefixes only, because edit distance takes time in proportion
// to both lengths.
constexpr size_t kMaxComparedLetters = 128;
// A prefix of one letter is too weak a hint.
constexpr size_t kMinPrefix = 2;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_equal_letter(char left, char right) { return lower(left) == lower(right); }

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), is_equal_letter);
}

// One edit for names of two letters, one more for each three further letters.
size_t max_edits(std::string_view name) { return (name.size() + 1) / 3; }

}  // namespace

size_t edit_distance(std::string_view left, std::string_view right) {
  // Rows of the dynamic-programming table: the current one and the two before it.
  std::vector<size_t> row(right.size() + 1);
  std::vector<size_t> above(row.size());
  std::vector<size_t> second_above(row.size());
  for (size_t column = 0; column < row.size(); ++column) row[column] = column;
  for (size_t line = 1; line <= left.size(); ++line) {
    second_above.swap(above);
    above.swap(row);
    row[0] = line;
    for (size_t column = 1; column <= right.size(); ++column) {
      const bool is_same = is_equal_letter(left[line - 1], right[column - 1]);
      row[column] =
          std::min({above[column - 1] + (is_same ? 0 : 1), above[column] + 1, row[column - 1] + 1});
      const bool is_exchanged = line > 1 && column > 1 &&
                                is_equal_letter(left[line - 1], right[column - 2]) &&
                                is_equal_letter(left[line - 2], right[column - 1]);
      if (is_exchanged) row[column] = std::min(row[column], second_above[column - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::string> likely_name(std::string_view name,
                                       const std::vector<std::string>& known) {
  name = name.substr(0, kMaxComparedLetters);
  const size_t limit = max_edits(name);
  const std::string* likely = nullptr;
  std::tuple<size_t, size_t> best;
  for (const std::string& candidate : known) {
    const std::string_view letters = std::string_view(candidate).substr(0, kMaxComparedLetters);
    const bool is_prefix = name.size() >= kMinPrefix && begins_with(letters, name);
    // The distance is at least the difference of the lengths.
    const bool is_similar_length =
        letters.size() <= name.size() + limit && name.size() <= letters.size() + limit;
    if (!is_prefix && !is_similar_length) continue;
    size_t distance = is_similar_length ? edit_distance(name, letters) : limit + 1;
    if (is_prefix) distance = std::min<size_t>(distance, 1);
    if (distance > limit && !is_prefix) continue;
    const std::tuple<size_t, size_t> rank{distance, candidate.size()};
    if (likely != nullptr && rank >= best) continue;
    likely = &candidate;
    best = rank;
  }
  if (likely == nullptr) return std::nullopt;
  return *likely;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::optional<std::string> likely = likely_name(name, known);
  return likely ? "; did you mean '" + *likely + "'?" : "";
}

}  // namespace tessera
