#include "cli/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

namespace tessera::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
// A column is not shortened below this.
constexpr size_t kMinimumWidth = 8;

bool is_continuation(char character) { return (static_cast<uint8_t>(character) & 0xc0U) == 0x80U; }

// The bytes of the character that begins `text`; 0 where they are no UTF-8.
size_t sequence_bytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t bytes = first < 0x80   ? 1
                       : first < 0xc2 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(bytes),
                   is_continuation)) {
    return 0;
  }
  const auto second = bytes > 1 ? static_cast<uint8_t>(text[1]) : uint8_t{0};
  // Overlong forms, surrogates, and what is beyond Unicode.
  const bool is_illegal = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                          (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_illegal ? 0 : bytes;
}

// C0, DEL, and C1, which U+0080 to U+009F spell in two bytes.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

// `count` characters of `text` from character `begin` on.
std::string_view characters(std::string_view text, size_t begin, size_t count) {
  const auto byte_of = [&](size_t character) {
    size_t byte = 0;
    for (; byte < text.size(); ++byte) {
      if (!is_continuation(text[byte]) && character-- == 0) break;
    }
    return byte;
  };
  const size_t from = byte_of(begin);
  return text.substr(from, byte_of(begin + count) - from);
}

std::string padded(const std::string& text, size_t width, Align align) {
  const std::string spaces(width - std::min(width, character_count(text)), ' ');
  return align == Align::Left ? text + spaces : spaces + text;
}

std::string scaled_text(double number, double step, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (number >= step && unit + 1 < units.size()) {
    number /= step;
    ++unit;
  }
  std::array<char, 48> text{};
  const int decimals = unit == 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f%s", decimals, number, units[unit]);
  return text.data();
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t bytes = sequence_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, bytes));
    if (bytes == 0 || is_control(character)) {
      for (const char byte : character) {
        std::array<char, 5> escape{};
        std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<uint8_t>(byte));
        result += escape.data();
      }
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

size_t character_count(std::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), is_continuation));
}

std::string shorten(std::string_view text, size_t columns) {
  const size_t count = character_count(text);
  if (count <= columns) return std::string(text);
  const size_t tail = (columns - 1) / 2;
  const size_t head = columns - 1 - tail;
  return std::string(characters(text, 0, head)) + std::string(kEllipsis) +
         std::string(characters(text, count - tail, tail));
}

std::string wrapped(std::string_view text, std::string_view indent) {
  const size_t columns = kTextColumns - indent.size();
  const std::string shown = printable(text);
  std::string result;
  std::string_view rest = shown;
  while (!rest.empty()) {
    std::string_view line = characters(rest, 0, columns);
    if (line.size() < rest.size() && rest[line.size()] != ' ') {
      const size_t space = line.rfind(' ');
      if (space != std::string_view::npos && space > 0) line = line.substr(0, space);
    }
    result += std::string(indent) + std::string(line) + "\n";
    rest.remove_prefix(line.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return result;
}

void TextTable::add_row(const std::vector<std::string>& cells) {
  std::vector<std::string>& row = rows_.emplace_back();
  for (const std::string& cell : cells) row.push_back(printable(cell));
}

std::vector<size_t> TextTable::widths(size_t available) const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < columns_.size(); ++column) {
    size_t width = character_count(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, character_count(row[column]));
    widths.push_back(width);
  }
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), kGap.size() * (widths.size() - 1));
  };
  while (total() > available) {
    size_t widest = columns_.size();
    for (size_t column = 0; column < columns_.size(); ++column) {
      const bool is_candidate = columns_[column].is_shortenable && widths[column] > kMinimumWidth;
      if (is_candidate && (widest == columns_.size() || widths[column] > widths[widest])) {
        widest = column;
      }
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string TextTable::text(std::string_view indent) const {
  const std::vector<size_t> column_widths = widths(kTextColumns - indent.size());
  std::string result;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(indent);
    for (size_t column = 0; column < columns_.size(); ++column) {
      const size_t width = column_widths[column];
      if (column > 0) line += kGap;
      line += padded(shorten(cell_of(column), width), width, columns_[column].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  };
  add_line([&](size_t column) { return columns_[column].title; });
  for (const auto& row : rows_) {
    add_line([&](size_t column) { return row[column]; });
  }
  return result;
}

std::string quantity_text(double number) {
  return scaled_text(number, 1000, {"", " k", " M", " G", " T", " P", " E"});
}

std::string bytes_text(int64_t bytes) {
  return scaled_text(static_cast<double>(bytes), 1024,
                     {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"});
}

}  // namespace tessera::cli
