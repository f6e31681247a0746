#include "capi/option_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/options/argument_text.h"
#include "api/options/shape_ranges.h"
#include "base/errors/likely_name.h"
#include "tessera/error.h"

namespace tessera::capi {
namespace {

[[noreturn]] void refuse(const BindOption& option, const std::string& text,
                         const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "option " + std::string(option.name) + " '" + text + "'",
              message);
}

// The name of the option in errors.
std::string title_of(const BindOption& option) { return "option " + std::string(option.name); }

// The parts of "NAME=VALUE". Names may contain '=', so the last one ends NAME.
std::pair<std::string, std::string> split(const BindOption& option, const std::string& text,
                                          const std::string& example) {
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
    refuse(option, text, "expected two parts with '=' between, such as " + example);
  }
  return {text.substr(0, sign), text.substr(sign + 1)};
}

// How the values of each type of option are written.

void parse(const BindOption& option, const std::string& text, bool& value) {
  value = parse_choice(title_of(option), text, {"false", "true"}) == 1;
}

template <class Enum>
  requires std::is_enum_v<Enum>
void parse(const BindOption& option, const std::string& text, Enum& value) {
  value = static_cast<Enum>(
      parse_choice(title_of(option), text, {option.choices.begin(), option.choices.end()}));
}

void parse(const BindOption& option, const std::string& text, std::optional<Optimize>& value) {
  parse(option, text, value.emplace());
}

void parse(const BindOption& option, const std::string& text, int& value) {
  value = static_cast<int>(parse_whole_number(title_of(option), text, 0, option.flag.max));
}

void parse(const BindOption& option, const std::string& text, int64_t& bytes) {
  bytes = parse_byte_count(title_of(option), text, 0);
}

void parse(const BindOption& option, const std::string& text, double& value) {
  value = parse_tolerance(title_of(option), text);
}

void parse(const BindOption& /*option*/, const std::string& text, std::string& value) {
  value = text;
}

void parse(const BindOption& /*option*/, const std::string& text, std::filesystem::path& value) {
  value = text;
}

void parse(const BindOption& option, const std::string& text, std::vector<std::string>& names) {
  names = text.empty() ? std::vector<std::string>()
                       : parse_name_list(title_of(option), text, "first,second");
}

void parse(const BindOption& option, const std::string& text, std::vector<Pin>& pins) {
  pins.push_back(parse_pin(title_of(option), text));
}

void parse(const BindOption& option, const std::string& text, std::vector<Exclusion>& exclusions) {
  exclusions.push_back(parse_exclusion(title_of(option), text));
}

void parse(const BindOption& option, const std::string& text, std::vector<StatePair>& pairs) {
  auto [input, output] = split(option, text, "past=present");
  pairs.push_back({std::move(input), std::move(output)});
}

void parse(const BindOption& option, const std::string& text,
           std::map<std::string, std::string>& layouts) {
  auto [name, layout] = split(option, text, "x=csr");
  layouts.insert_or_assign(std::move(name), std::move(layout));
}

void parse(const BindOption& option, const std::string& text,
           std::map<std::string, std::vector<int64_t>>& shapes) {
  auto [name, dims] = split(option, text, "x=1x3x224x224");
  shapes.insert_or_assign(std::move(name),
                          parse_dims(title_of(option) + " of '" + name + "'", dims));
}

void parse(const BindOption& option, const std::string& text,
           std::map<std::string, std::vector<SizeRange>>& ranges) {
  auto [name, sizes] = split(option, text, "x=1x3x32..512x32..512");
  ranges.insert_or_assign(std::move(name),
                          parse_ranges(title_of(option) + " of '" + name + "'", sizes));
}

// Whether values of the field can be written as text; arrays and functions cannot.
bool is_text(const BindOption& option) {
  return std::visit(
      [&]<class T>(const Field<T>& /*field*/) {
        return requires(T& value) { parse(option, std::string(), value); };
      },
      option.field.typed);
}

const BindOption& find_option(std::string_view name) {
  std::vector<std::string> known;
  for (const BindOption* option : text_options()) {
    if (option->name == name) return *option;
    known.emplace_back(option->name);
  }
  const bool is_known = std::ranges::any_of(
      bind_options(), [&](const BindOption& option) { return option.name == name; });
  // "run.nan" is how docs/options.md writes it.
  const std::string last(name.substr(name.rfind('.') + 1));
  throw Error(ErrorKind::InvalidArgument, "option '" + std::string(name) + "'",
              is_known ? "cannot be written as text"
                       : "expected the name of an option of bind (docs/options.md), found no such "
                         "option" +
                             did_you_mean(last, known));
}

}  // namespace

std::vector<const BindOption*> text_options() {
  std::vector<const BindOption*> found;
  for (const BindOption& option : bind_options()) {
    if (is_text(option)) found.push_back(&option);
  }
  return found;
}

void set_option(BindOptions& options, std::string_view name, const std::string& text) {
  const BindOption& option = find_option(name);
  BindOptions changed = options;
  std::visit(
      [&]<class T>(const Field<T>& field) {
        if constexpr (requires(T& value) { parse(option, text, value); }) {
          parse(option, text, field.edit(changed));
        }
      },
      option.field.typed);
  check_options(changed);
  options = std::move(changed);
}

}  // namespace tessera::capi
