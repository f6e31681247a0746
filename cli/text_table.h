// Text for a terminal: tables that fit its width, and names made safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

inline constexpr size_t kTextColumns = 100;

// Names in models may hold any bytes: control characters become \xNN, and so do bytes that are no
// UTF-8, so that no file can steer the terminal.
std::string printable(std::string_view text);

// At most `columns` (at least 1) characters of printable `text`: a longer one loses its middle,
// where an ellipsis stands, because names in models differ at both ends.
std::string shorten(std::string_view text, size_t columns);

// Printable `text` in lines of at most kTextColumns characters, each begun by `indent` and ended by
// a newline, broken between words where these are not too long.
std::string wrapped(std::string_view text, std::string_view indent = "");

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

  // The lines, each begun by `indent` and ended by a newline, none longer than kTextColumns as far
  // as the shortenable columns allow.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<size_t> widths(size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1.50 G", "320 k", "17": a thousand is a k.
std::string quantity_text(double number);

// "1.5 MiB", "17 B".
std::string bytes_text(int64_t bytes);

}  // namespace tessera::cli
