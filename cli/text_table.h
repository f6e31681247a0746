// Text for a terminal: tables and sentences that fit its width, and names made safe to show.
// Numbers with units are in quantities.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

// The width where there is no terminal to ask, and the limits of what a terminal's width counts
// for.
inline constexpr size_t kTextColumns = 100;
inline constexpr size_t kMinColumns = 60;
inline constexpr size_t kMaxColumns = 160;

// What text is laid out for.
struct TextStyle {
  size_t columns = kTextColumns;
  // On a terminal, what is too long is shortened or continues on the next line. A program that
  // reads a pipe or a file gets names whole, even where a line is longer than `columns` then.
  bool cuts_names = true;
};

// For a terminal `columns` wide: kMinColumns to kMaxColumns of them; kTextColumns where that is
// 0, as terminals say that do not know their width.
TextStyle terminal_style(size_t columns);

// For a pipe or a file.
inline constexpr TextStyle kPipeStyle{.columns = kTextColumns, .cuts_names = false};

// For what stdout is.
TextStyle stdout_style();

// Names in models may hold any bytes: control characters become \xNN, and so do those that reorder
// or hide text, and bytes that are no UTF-8, so that no file can steer the terminal.
std::string printable(std::string_view text);

// At most `columns` (at least 1) characters of printable `text`: a longer one loses its middle,
// where an ellipsis stands, because names in models differ at both ends.
std::string shorten(std::string_view text, size_t columns);

// Printable `text`, shortened on a terminal to what fits behind `used` characters.
std::string fitted(std::string_view text, const TextStyle& style, size_t used = 0);

// Printable `text` in lines of at most `style.columns` characters, each begun by `indent` and ended
// by a newline, broken between words. Only a terminal's lines are broken inside of longer words.
std::string wrapped(std::string_view text, const TextStyle& style, std::string_view indent = "");

// The same behind `label`, which takes `label_columns` of each line: "label   text".
std::string labelled(std::string_view label, std::string_view text, size_t label_columns,
                     const TextStyle& style);

// The number of characters of UTF-8 text.
size_t character_count(std::string_view text);

enum class Align : uint8_t { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Left;
  bool is_shortenable = false;  // loses characters where the table is too wide
};

// A table with a line of titles. Cells are made printable.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // `cells` has one entry a column.
  void add_row(const std::vector<std::string>& cells);

  // The lines, each begun by `indent` and ended by a newline. On a terminal none is longer than
  // `style.columns`: columns that may be shortened lose characters first; where that is not enough,
  // a row takes several lines, the later ones indented, and so do the titles.
  std::string text(const TextStyle& style, std::string_view indent = "") const;

 private:
  // Columns `first` up to before `last`, which share a line, and what each is wide.
  struct Line {
    size_t first = 0;
    size_t last = 0;
    std::vector<size_t> widths;
  };
  std::vector<size_t> natural_widths() const;
  std::vector<Line> lines_of(size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tessera::cli
