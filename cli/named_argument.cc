#include "cli/named_argument.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

namespace tessera::cli {
namespace {

// More names than these make no message clearer.
constexpr size_t kListedNames = 10;

[[noreturn]] void refuse(std::string_view option, const std::string& text,
                         const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
}

// The number that all of `text` spells.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string list_names(const std::vector<ValueDescription>& values) {
  std::string list;
  for (size_t index = 0; index < std::min(values.size(), kListedNames); ++index) {
    list += (list.empty() ? "" : ", ") + ("#" + std::to_string(index)) + " '" + values[index].name +
            "'";
  }
  if (values.size() > kListedNames) list += ", ...";
  return list;
}

}  // namespace

NamedArgument split_named_argument(std::string_view option, const std::string& text) {
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
    refuse(option, text, "expected NAME=VALUE, where NAME may be #<index>");
  }
  return {text.substr(0, sign), text.substr(sign + 1)};
}

std::vector<int64_t> parse_dims(std::string_view option, const std::string& text) {
  std::vector<int64_t> dims;
  if (text == "scalar") return dims;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const auto dim = parse_number<int64_t>(std::string_view(text).substr(begin, end - begin));
    if (!dim || *dim < 0) {
      refuse(option, text,
             "expected dimensions such as 1x3x224x224, or 'scalar', found '" +
                 text.substr(begin, end - begin) + "'");
    }
    dims.push_back(*dim);
    begin = end + 1;
  }
  return dims;
}

uint64_t parse_whole_number(std::string_view option, const std::string& text) {
  const auto number = parse_number<uint64_t>(text);
  if (!number) {
    refuse(option, text, "expected a whole number of at least 0 and at most 64 bits");
  }
  return *number;
}

uint64_t parse_whole_number(std::string_view option, const std::string& text, uint64_t least,
                            uint64_t most) {
  const auto number = parse_number<uint64_t>(text);
  if (number && *number >= least && *number <= most) return *number;
  refuse(option, text,
         "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

double parse_positive_number(std::string_view option, const std::string& text, double most) {
  const auto number = parse_number<double>(text);
  if (number && *number > 0 && *number <= most) return *number;
  std::array<char, 32> limit{};
  std::snprintf(limit.data(), limit.size(), "%g", most);
  refuse(option, text, std::string("expected a number above 0 and at most ") + limit.data());
}

size_t find_value_index(std::string_view option, std::string_view kind, const std::string& name,
                        const std::vector<ValueDescription>& values) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const ValueDescription& value) {
    return value.name == name;
  });
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  if (name.starts_with('#')) {
    const auto index = parse_number<size_t>(std::string_view(name).substr(1));
    if (index && *index < values.size()) return *index;
  }
  const std::string plural = std::string(kind) + "s";
  refuse(option, name,
         "the model has no such " + std::string(kind) +
             (values.empty() ? "; it has no " + plural
                             : "; its " + plural + " are " + list_names(values)));
}

}  // namespace tessera::cli
