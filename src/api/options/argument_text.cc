#include "api/options/argument_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "base/errors/likely_name.h"

namespace tessera {
namespace {

// Longer lists of names make no message clearer.
constexpr size_t kListedNames = 10;

[[noreturn]] void refuse(std::string_view option, const std::string& text,
                         const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
}

// Parses `text`, which must be a number as a whole.
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

// 1 for ""; 0 for an unknown unit. "MB" is not accepted, because it may mean a million bytes.
int64_t bytes_of_unit(std::string_view unit) {
  if (unit.empty()) return 1;
  constexpr std::string_view kUnits = "KMGT";
  const size_t index =
      kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  const bool is_unit = unit.size() == 1 || unit.substr(1) == "iB" || unit.substr(1) == "ib";
  if (index == std::string_view::npos || !is_unit) return 0;
  return int64_t{1} << (10 * (index + 1));
}

// Parses a number of bytes; nullopt if `text` is not one, or if it exceeds 63 bits.
std::optional<int64_t> byte_count(std::string_view text) {
  const size_t whole_end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto whole = parse_number<int64_t>(text.substr(0, whole_end));
  std::string_view rest = text.substr(whole_end);
  std::string_view digits;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    digits = rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
    rest.remove_prefix(digits.size());
    // A decimal point needs digits and a unit: fractions of a byte do not exist.
    if (digits.empty() || rest.empty()) return std::nullopt;
  }
  const int64_t unit = bytes_of_unit(rest);
  if (!whole || unit == 0) return std::nullopt;
  double fraction = 0;
  for (size_t index = digits.size(); index-- > 0;) {
    fraction = (fraction + (digits[index] - '0')) / 10;
  }
  const auto part = std::min(static_cast<int64_t>(fraction * static_cast<double>(unit)), unit - 1);
  if (*whole > (std::numeric_limits<int64_t>::max() - part) / unit) return std::nullopt;
  return *whole * unit + part;
}

// The parts of `text` before and after `position`; all and "" if that is npos.
std::pair<std::string, std::string> split_at(const std::string& text, size_t position) {
  if (position == std::string::npos) return {text, ""};
  return {text.substr(0, position), text.substr(position + 1)};
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

int64_t parse_byte_count(std::string_view option, const std::string& text, int64_t least) {
  const std::optional<int64_t> bytes = byte_count(text);
  if (bytes && *bytes >= least) return *bytes;
  refuse(option, text,
         "expected a size such as 512M or 1.5G" +
             std::string(bytes ? " of at least " + std::to_string(least) + " bytes" : "") +
             ", found '" + text + "'");
}

double parse_tolerance(std::string_view option, const std::string& text) {
  const auto number = parse_number<double>(text);
  if (number && std::isfinite(*number) && *number >= 0) return *number;
  refuse(option, text, "expected a finite number of at least 0, such as 1e-3");
}

size_t parse_choice(std::string_view option, const std::string& text,
                    const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  std::string list;
  for (size_t index = 0; index < choices.size(); ++index) {
    if (index > 0) list += index + 1 == choices.size() ? " or " : ", ";
    list += choices[index];
  }
  refuse(option, text, "expected " + list + did_you_mean(text, choices));
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
  std::vector<std::string> names;
  for (const ValueDescription& value : values) names.push_back(value.name);
  const std::string plural = std::string(kind) + "s";
  refuse(option, name,
         "the model has no such " + std::string(kind) +
             (values.empty() ? "; it has no " + plural
                             : "; its " + plural + " are " + list_names(values)) +
             did_you_mean(name, names));
}

Pin parse_pin(std::string_view option, const std::string& text) {
  constexpr const char* kExpected =
      "expected NODES=BACKEND or NODES=BACKEND:ALGORITHM, such as conv1=native:winograd";
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos) refuse(option, text, kExpected);
  const auto [nodes, kernel] = split_at(text, sign);
  const size_t colon = kernel.find(':');
  const auto [backend, algorithm] = split_at(kernel, colon);
  const bool lacks_algorithm = colon != std::string::npos && algorithm.empty();
  if (nodes.empty() || backend.empty() || lacks_algorithm) refuse(option, text, kExpected);
  return {.nodes = nodes, .backend = backend, .algorithm = algorithm};
}

Exclusion parse_exclusion(std::string_view option, const std::string& text) {
  const size_t colon = text.find(':');
  const auto [backend, op] = split_at(text, colon);
  if (backend.empty() || (colon != std::string::npos && op.empty())) {
    refuse(option, text, "expected BACKEND or BACKEND:OP, such as native:Conv");
  }
  return {.backend = backend, .op = op};
}

std::vector<std::string> parse_name_list(std::string_view option, const std::string& text,
                                         const std::string& example) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (name.empty()) {
      refuse(option, text, "expected names with commas between, such as " + example);
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse(option, text, "expected each name once, found '" + name + "' twice");
    }
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

}  // namespace tessera
