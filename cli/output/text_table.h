// Formats text for a terminal: tables and sentences that fit its width, and names made safe to
// print. Numbers with units are in quantities.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

// The width if there is no terminal, and the limits within which a terminal's width is respected.
inline constexpr size_t kTextColumns = 100;
inline constexpr size_t kMinColumns = 60;
inline constexpr size_t kMaxColumns = 160;

// The properties of the output for which text is laid out.
struct TextStyle {
  size_t columns = kTextColumns;
  // On a terminal, long text is shortened or continues on the next line. A program that reads a
  // pipe or a file gets complete names, even if a line becomes longer than `columns`.
  bool cuts_names = true;
};

// The style for a terminal of `columns` columns, limited to at least kMinColumns and at most
// kMaxColumns. 0 means kTextColumns: terminals report 0 if they do not know their width.
TextStyle terminal_style(size_t columns);

// The style for a pipe or a file.
inline constexpr TextStyle kPipeStyle{.columns = kTextColumns, .cuts_names = false};

// The style for the current stdout.
TextStyle stdout_style();

// Names in models may contain any bytes. Control characters, characters that reorder or hide text,
// and bytes that are not valid UTF-8 become \xNN, so that no file can control the terminal.
std::string printable(std::string_view text);

// "a, b, c"
std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ");

// At most `columns` (at least 1) characters of printable `text`. In a longer text, an ellipsis
// replaces the middle, because names in models differ at both ends.
std::string shorten(std::string_view text, size_t columns);

// Printable `text`; on a terminal shortened to fit after `used` characters.
std::string fitted(std::string_view text, const TextStyle& style, size_t used = 0);

// Printable `text`, broken between words into lines of at most `style.columns` characters. Each
// line begins with `indent` and ends with a newline. Longer words are broken only on a terminal.
std::string wrapped(std::string_view text, const TextStyle& style, std::string_view indent = "");

// Same as wrapped(), to the right of `label`, which takes `label_columns` columns: "label   text".
std::string labelled(std::string_view label, std::string_view text, size_t label_columns,
                     const TextStyle& style);

// The number of characters of a UTF-8 text.
size_t character_count(std::string_view text);

enum class Align : uint8_t { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Left;
  // Whether cells may be shortened if the table is too wide. In a pipe, where they are complete,
  // long ones exceed their column.
  bool is_shortenable = false;
};

// A table with a title line. Cells are made printable.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // `cells` has one entry for each column.
  void add_row(const std::vector<std::string>& cells);

  // The lines, each begun by `indent` and ended by a newline. On a terminal no line is longer than
  // `style.columns`: shortenable columns are cut first; if that is not enough, a row (and the
  // titles) takes several lines, of which the later ones are indented.
  std::string text(const TextStyle& style, std::string_view indent = "") const;

 private:
  // The columns from `first` to before `last`, which share a line, and their widths.
  struct Line {
    size_t first = 0;
    size_t last = 0;
    std::vector<size_t> widths;
  };
  std::vector<size_t> natural_widths(const TextStyle& style) const;
  std::vector<Line> lines_of(const TextStyle& style, size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tessera::cli
