#include "cli/output/text_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "base/text/utf8.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
// The minimum width to which a column is shortened.
constexpr size_t kMinimumWidth = 8;
// The maximum width of a column of names in a pipe.
constexpr size_t kColumnsOfName = 40;
// Indents the continuation lines of a row.
constexpr std::string_view kFoldIndent = "    ";

bool is_continuation(char character) { return (static_cast<uint8_t>(character) & 0xc0U) == 0x80U; }

// C0, DEL, C1 (U+0080 to U+009F), and characters without width or that change the direction of text
// in terminals: U+00AD, U+061C, U+180E, U+200B to U+200F, U+2028 to U+202E, U+2060 to U+2069,
// U+FEFF, U+FFF9 to U+FFFB, and the tags from U+E0000 on. Also U+FFFE and U+FFFF, which XML
// forbids.
bool is_control(std::string_view character) {
  const auto byte = [&](size_t index) { return static_cast<uint8_t>(character[index]); };
  const auto is_last_from = [&](uint8_t first, uint8_t last) {
    return byte(2) >= first && byte(2) <= last;
  };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) {
    return (byte(0) == 0xc2 && (byte(1) < 0xa0 || byte(1) == 0xad)) || character == "\xd8\x9c";
  }
  if (character.size() == 4) return character.starts_with("\xf3\xa0");
  if (character.starts_with("\xe2\x80")) {
    return is_last_from(0x8b, 0x8f) || is_last_from(0xa8, 0xae);
  }
  if (character.starts_with("\xe2\x81")) return is_last_from(0xa0, 0xa9);
  if (character.starts_with("\xef\xbf")) {
    return is_last_from(0xb9, 0xbb) || is_last_from(0xbe, 0xbf);
  }
  return character == "\xef\xbb\xbf" || character == "\xe1\xa0\x8e";
}

// `count` characters of `text`, starting at character `begin`.
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

// Whether `space` is between a number and its unit, which is at most as long as "MiB".
bool parts_quantity(std::string_view text, size_t space) {
  constexpr size_t kMaxUnit = 3;
  const std::string_view after = text.substr(space + 1);
  const size_t word = std::min(after.find_first_of(" ,;)"), after.size());
  return text[space - 1] >= '0' && text[space - 1] <= '9' && word > 0 && word <= kMaxUnit;
}

// The longest beginning of `text` that fits into `columns` characters.
std::string_view first_line(std::string_view text, size_t columns, bool breaks_words) {
  const std::string_view line = characters(text, 0, columns);
  if (line.size() == text.size()) return line;
  size_t space = text[line.size()] == ' ' ? line.size() : line.rfind(' ');
  while (space != std::string_view::npos && space > 0) {
    if (!parts_quantity(text, space)) return line.substr(0, space);
    space = line.rfind(' ', space - 1);
  }
  return breaks_words ? line : text.substr(0, text.find(' ', 1));
}

size_t total_width(const std::vector<size_t>& widths, size_t first, size_t last) {
  size_t total = kGap.size() * (last - first - 1);
  for (size_t column = first; column < last; ++column) total += widths[column];
  return total;
}

// Narrows the widest column of `widths` repeatedly, but none below `least`, until the line is at
// most `available` wide. If that is not enough, narrows columns below `least`.
std::vector<size_t> shrunk(std::vector<size_t> widths, const std::vector<size_t>& least,
                           size_t available) {
  const auto narrow = [&](const auto& may_shrink) {
    while (total_width(widths, 0, widths.size()) > available) {
      size_t widest = widths.size();
      for (size_t column = 0; column < widths.size(); ++column) {
        const bool is_wider = widest == widths.size() || widths[column] > widths[widest];
        if (may_shrink(column) && is_wider) widest = column;
      }
      if (widest == widths.size()) return;
      --widths[widest];
    }
  };
  narrow([&](size_t column) { return widths[column] > least[column]; });
  narrow([&](size_t column) { return widths[column] > 1; });
  return widths;
}

// Assigns columns to lines, as pairs of first column and one past the last: the fewest lines whose
// minimum widths fit into `available`, and among these the assignment that cuts the fewest
// characters.
std::vector<std::pair<size_t, size_t>> choose_breaks(const std::vector<size_t>& widths,
                                                     const std::vector<size_t>& least,
                                                     size_t available) {
  struct Choice {
    size_t lines = std::numeric_limits<size_t>::max();
    size_t cut = 0;
    size_t first = 0;  // the first column of the last line
  };
  // Indexed by the number of columns laid out so far.
  std::vector<Choice> best(widths.size() + 1);
  best[0].lines = 0;
  for (size_t last = 1; last <= widths.size(); ++last) {
    for (size_t first = 0; first < last; ++first) {
      const size_t indent = first == 0 ? 0 : kFoldIndent.size();
      // If a single column is too wide for a line, it is cut.
      const bool fits = last - first == 1 || total_width(least, first, last) + indent <= available;
      if (!fits) continue;
      const size_t wanted = total_width(widths, first, last) + indent;
      const Choice choice{best[first].lines + 1,
                          best[first].cut + (wanted > available ? wanted - available : 0), first};
      if (std::pair(choice.lines, choice.cut) < std::pair(best[last].lines, best[last].cut)) {
        best[last] = choice;
      }
    }
  }
  std::vector<std::pair<size_t, size_t>> breaks;
  for (size_t last = widths.size(); last > 0; last = best[last].first) {
    breaks.insert(breaks.begin(), {best[last].first, last});
  }
  return breaks;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t bytes = first_code_point(text).bytes;
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

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

std::string shorten(std::string_view text, size_t columns) {
  const size_t count = character_count(text);
  if (count <= columns) return std::string(text);
  const size_t tail = (columns - 1) / 2;
  const size_t head = columns - 1 - tail;
  return std::string(characters(text, 0, head)) + std::string(kEllipsis) +
         std::string(characters(text, count - tail, tail));
}

TextStyle terminal_style(size_t columns) {
  if (columns == 0) columns = kTextColumns;
  return {.columns = std::clamp(columns, kMinColumns, kMaxColumns)};
}

TextStyle stdout_style() {
  if (isatty(STDOUT_FILENO) != 1) return kPipeStyle;
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return terminal_style(is_known ? size.ws_col : 0);
}

std::string fitted(std::string_view text, const TextStyle& style, size_t used) {
  std::string shown = printable(text);
  if (!style.cuts_names) return shown;
  return shorten(shown, style.columns - std::min(used, style.columns - 1));
}

std::string wrapped(std::string_view text, const TextStyle& style, std::string_view indent) {
  const size_t columns = style.columns - character_count(indent);
  const std::string shown = printable(text);
  std::string result;
  std::string_view rest = shown;
  while (!rest.empty()) {
    const std::string_view line = first_line(rest, columns, style.cuts_names);
    result += std::string(indent) + std::string(line) + "\n";
    rest.remove_prefix(line.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return result;
}

std::string labelled(std::string_view label, std::string_view text, size_t label_columns,
                     const TextStyle& style) {
  std::string lines = wrapped(text, style, std::string(label_columns, ' '));
  const size_t columns = std::min(label.size(), label_columns - 1);
  return lines.empty() ? std::string(label) + "\n" : lines.replace(0, columns, label);
}

void TextTable::add_row(const std::vector<std::string>& cells) {
  std::vector<std::string>& row = rows_.emplace_back();
  for (const std::string& cell : cells) row.push_back(printable(cell));
}

std::vector<size_t> TextTable::natural_widths(const TextStyle& style) const {
  std::vector<size_t> widths;
  for (size_t column = 0; column < columns_.size(); ++column) {
    size_t width = character_count(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, character_count(row[column]));
    // In a pipe, a few names that are longer make their own lines longer, not all others.
    const bool is_limited = !style.cuts_names && columns_[column].is_shortenable;
    widths.push_back(is_limited ? std::min(width, kColumnsOfName) : width);
  }
  return widths;
}

std::vector<TextTable::Line> TextTable::lines_of(const TextStyle& style, size_t available) const {
  const std::vector<size_t> widths = natural_widths(style);
  std::vector<size_t> least = widths;
  for (size_t column = 0; column < widths.size(); ++column) {
    if (columns_[column].is_shortenable) least[column] = std::min(widths[column], kMinimumWidth);
  }
  std::vector<Line> lines;
  for (const auto& [first, last] : choose_breaks(widths, least, available)) {
    const auto part = [&](const std::vector<size_t>& all) {
      return std::vector<size_t>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                 all.begin() + static_cast<std::ptrdiff_t>(last));
    };
    const size_t indent = first == 0 ? 0 : kFoldIndent.size();
    lines.push_back({first, last, shrunk(part(widths), part(least), available - indent)});
  }
  return lines;
}

std::string TextTable::text(const TextStyle& style, std::string_view indent) const {
  const size_t available =
      style.cuts_names ? style.columns - indent.size() : std::numeric_limits<size_t>::max();
  const std::vector<Line> lines = lines_of(style, available);
  std::string result;
  const auto add_row = [&](const auto& cell_of) {
    for (const Line& part : lines) {
      std::string line(indent);
      if (part.first > 0) line += kFoldIndent;
      for (size_t column = part.first; column < part.last; ++column) {
        const size_t width = part.widths[column - part.first];
        if (column > part.first) line += kGap;
        const std::string& cell = cell_of(column);
        const bool is_complete = !style.cuts_names && columns_[column].is_shortenable;
        line += padded(is_complete ? cell : shorten(cell, width), width, columns_[column].align);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      // An empty continuation line is omitted.
      if (part.first == 0 || !line.empty()) result += line + "\n";
    }
  };
  add_row([&](size_t column) { return columns_[column].title; });
  for (const auto& row : rows_) {
    add_row([&](size_t column) { return row[column]; });
  }
  return result;
}

}  // namespace tessera::cli
