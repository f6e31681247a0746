// Prints the documents of descriptions from the rows in src/api/describe/description_fields.h:
//   print_descriptions python        python/tessera/descriptions.py
//   print_descriptions json < PAGE   PAGE, an older docs/formats/json.md, with the rows of today
// tools/write_pages writes both files.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "api/describe/description_fields.h"

namespace tessera {
namespace {

constexpr size_t kColumns = 100;

// The parts of `text` between separators; none after a separator at the end.
std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

std::string replaced(std::string text, std::string_view old_part, std::string_view new_part) {
  for (size_t at = text.find(old_part); at != std::string::npos;
       at = text.find(old_part, at + new_part.size())) {
    text.replace(at, old_part.size(), new_part);
  }
  return text;
}

// ---- Python -------------------------------------------------------------------------------------

constexpr const char* kPythonHead =
    R"("""Descriptions of models, plans and backends: plain data, with the names of tessera/descriptions.h.

They compare by value, and `dataclasses.asdict` converts them to dictionaries that can be written
as JSON. repr() is short: it counts the elements of long lists and cuts long texts. The unit of a
time is in its name: `_ns` or `seconds`.

Printed by `print_descriptions` from src/api/describe/description_fields.h; a test compares them.
"""

from .description_texts import ModelText, PlanText
from .plain_data import PlainData, plain_data

)";

// The type in Python of a field of type T.
template <class T>
std::string annotation() {
  if constexpr (kIsDescribed<T>) {
    return kFields<T>.name;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::chrono::nanoseconds>) {
    return "int";
  } else if constexpr (std::is_same_v<T, double>) {
    return "float";
  } else if constexpr (std::is_same_v<T, std::vector<Dimension>>) {
    return "tuple[int | str, ...]";
  } else if constexpr (std::is_same_v<T, std::vector<CacheIngredient>>) {
    return "dict[str, str]";
  } else if constexpr (kIsOptional<T>) {
    return annotation<typename T::value_type>() + " | None";
  } else if constexpr (kIsVector<T>) {
    return "list[" + annotation<typename T::value_type>() + "]";
  } else if constexpr (requires { typename T::mapped_type; }) {
    return "dict[str, " + annotation<typename T::mapped_type>() + "]";
  } else {
    return "str";
  }
}

// `text` in lines of at most 100 columns, which begin with `start`.
std::string wrapped(const std::string& text, const std::string& start) {
  std::string lines;
  std::string line = start;
  for (const std::string& word : split(text, " ")) {
    if (line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = start;
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

// "`fine`, `refused`"; "" if the help names one of them.
std::string python_choices(const std::string& help, std::string_view choices) {
  std::string text;
  for (const std::string& choice : split(choices, ", ")) {
    const std::string shown = "`" + choice + "`";
    if (help.find(shown) != std::string::npos) return "";
    text += (text.empty() ? "" : ", ") + shown;
  }
  return text;
}

std::string python_help(std::string_view help, const RowExtras& extras) {
  const std::string text = replaced(std::string(help), "null", "None");
  const std::string choices = python_choices(text, extras.choices);
  return text + (choices.empty() ? "" : ": " + choices) + extras.python_note;
}

// The declaration, with its help beside it or, if there is no space, in lines above it.
std::string python_field(std::string declaration, const std::string& help,
                         std::string_view default_value) {
  if (!default_value.empty()) declaration += " = " + std::string(default_value);
  std::string line = "    " + declaration + "  # " + help + "\n";
  if (line.size() <= kColumns + 1) return line;
  return wrapped(help, "    #") + "    " + declaration + "\n";
}

// The fields are in the order of the struct, so that a new one at its end is also the last argument
// of Python's constructor.
template <class Description>
std::string python_class(const Description& description) {
  const DescribedClass& described = kFields<Description>;
  std::map<const void*, std::string> fields;
  for_each_field<Description>([&]<class Field>(const Field& field) {
    fields[&(description.*field.member)] =
        python_field(std::string(field.name) + ": " + annotation<typename Field::Type>(),
                     python_help(field.help, field.extras), field.extras.python_default);
  });
  std::string text = "\n\n@plain_data\nclass " + std::string(described.name) + "(" +
                     described.python_base + "):\n    \"\"\"" + described.help + "\"\"\"\n\n";
  for (const auto& [address, lines] : fields) text += lines;
  return text;
}

std::string python_file() {
  std::set<std::string> names;
  std::string classes;
  for_each_description(Descriptions(), [&]<class Description>(const Description& description) {
    names.insert(kFields<Description>.name);
    classes += python_class(description);
  });
  std::string text = std::string(kPythonHead) + "__all__ = [\n";
  for (const std::string& name : names) text += "    \"" + name + "\",\n";
  return text + "]\n" + classes;
}

// ---- JSON ---------------------------------------------------------------------------------------

// The kind of a value without regard to the unit in its key.
template <class T>
std::string json_kind(std::string_view key) {
  if constexpr (kIsDescribed<T>) {
    return split(kFields<T>.json_titles, ", ").front();
  } else if constexpr (std::is_same_v<T, bool>) {
    return "boolean";
  } else if constexpr (std::is_integral_v<T>) {
    return key.ends_with("_bytes") ? "bytes" : key.ends_with("_count") ? "count" : "integer";
  } else if constexpr (std::is_same_v<T, double>) {
    return key.ends_with("_us") ? "microseconds" : "number";
  } else if constexpr (std::is_same_v<T, Dimension>) {
    return "integer or text";
  } else if constexpr (kIsOptional<T>) {
    return json_kind<typename T::value_type>(key) +
           (kIsVector<typename T::value_type> ? ", or null" : " or null");
  } else if constexpr (kIsVector<T>) {
    return "list of " + json_kind<typename T::value_type>(key);
  } else {
    return "text";
  }
}

std::string json_choices(std::string_view choices) {
  std::string text = "one of ";
  for (const std::string& choice : split(choices, ", ")) {
    text += (text.ends_with("`") ? ", `" : "`") + replaced(choice, " ", "_") + "`";
  }
  return text;
}

template <class Field>
std::string json_kind(const Field& field, bool is_nullable) {
  const std::string_view given = field.extras.kind;
  if (!given.empty()) return std::string(given);
  if (!std::string_view(field.extras.choices).empty()) return json_choices(field.extras.choices);
  const std::string kind = json_kind<typename Field::Type>(field.key);
  return kind + (is_nullable && !kind.ends_with("null") ? " or null" : "");
}

std::string json_row(std::string_view key, const std::string& kind, const std::string& help) {
  return "| `" + std::string(key) + "` | " + kind + " | " + help + " |";
}

// `help` with the keys of fields in place of their names.
std::string json_help(const std::string& help, const std::map<std::string, std::string>& keys) {
  std::string text;
  bool is_code = false;
  for (const std::string& part : split(help, "`")) {
    const auto key = is_code ? keys.find(part) : keys.end();
    if (is_code) text += "`" + (key == keys.end() ? part : key->second) + "`";
    if (!is_code) text += part;
    is_code = !is_code;
  }
  return text;
}

template <class Description>
std::vector<std::string> json_rows() {
  std::map<std::string, std::string> keys;
  for_each_field<Description>([&]<class Field>(const Field& field) {
    if (Field::kIsPrinted) keys[field.name] = field.key;
  });
  std::vector<std::string> rows;
  for_each_row<Description>([&]<class Row>(const Row& row) {
    if constexpr (std::is_same_v<Row, ComputedKey>) {
      rows.push_back(json_row(row.key, row.kind, row.help));
    } else if constexpr (Row::kIsPrinted) {
      rows.push_back(json_row(row.key, json_kind(row, kFields<Description>.is_nullable),
                              json_help(row.help, keys) + row.extras.json_note));
    }
  });
  return rows;
}

using Lines = std::vector<std::string>;

// "index" for the row "| `index` | integer | its index |"; "" for other lines.
std::string key_of(const std::string& line) {
  constexpr std::string_view kStart = "| `";
  if (!line.starts_with(kStart)) return "";
  return line.substr(kStart.size(), line.find('`', kStart.size()) - kStart.size());
}

// Replaces the rows of the table `title`, from the first to the last whose key is in `rows`. Rows
// before and after these, which have other keys, are written by hand. If there are none with such
// keys, the rows become the last ones.
void replace_rows(Lines& page, const std::string& title, const Lines& rows) {
  auto line = std::find_if(page.begin(), page.end(), [&](const std::string& each) {
    return each == "### " + title || each == "## `" + title + "`";
  });
  line = std::find(line, page.end(), "|---|---|---|");
  if (line == page.end()) throw std::runtime_error("the page has no table '" + title + "'");
  std::set<std::string> keys;
  for (const std::string& row : rows) keys.insert(key_of(row));
  const auto first_row = line + 1;
  const auto end =
      std::find_if(first_row, page.end(), [](const std::string& each) { return each.empty(); });
  const auto is_known = [&](const std::string& each) { return keys.contains(key_of(each)); };
  const auto first = std::find_if(first_row, end, is_known);
  const auto last =
      std::find_if(std::make_reverse_iterator(end), std::make_reverse_iterator(first), is_known)
          .base();
  page.insert(page.erase(first, last), rows.begin(), rows.end());
}

std::string json_page(std::string_view old_page) {
  Lines page = split(old_page, "\n");
  for_each_description(Descriptions(), [&]<class Description>(const Description& /*any*/) {
    for (const std::string& title : split(kFields<Description>.json_titles, ", ")) {
      replace_rows(page, title, json_rows<Description>());
    }
  });
  std::string text;
  for (const std::string& line : page) text += line + "\n";
  return text;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  const std::string_view what = count == 2 ? arguments[1] : "";
  try {
    if (what == "python") {
      std::cout << tessera::python_file();
    } else if (what == "json") {
      const std::string page(std::istreambuf_iterator<char>(std::cin), {});
      std::cout << tessera::json_page(page);
    } else {
      std::cerr << "usage: print_descriptions python|json\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "print_descriptions: " << error.what() << "\n";
    return 1;
  }
}
