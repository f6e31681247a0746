#include "cli/bind_arguments.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cli/named_argument.h"

namespace tessera::cli {
namespace {

constexpr double kMaxSeconds = 1e6;

[[noreturn]] void refuse(std::string_view option, const std::string& text,
                         const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
}

// The parts of `text` before and after `position`; all and "" if that is npos.
std::pair<std::string, std::string> split_at(const std::string& text, size_t position) {
  if (position == std::string::npos) return {text, ""};
  return {text.substr(0, position), text.substr(position + 1)};
}

size_t index_of(std::string_view name) {
  return static_cast<size_t>(&bind_option(name) - bind_options().data());
}

size_t parse_choice_of(const BindOption& option, const std::string& text) {
  return parse_choice(option.flag.name, text, {option.choices.begin(), option.choices.end()});
}

// How the values of each type of option are written.

void parse(const BindOption& option, const GivenOption& given, bool& value) {
  value = option.choices.empty() ? !given.is_negated : parse_choice_of(option, *given.value) == 1;
}

void parse(const BindOption& /*option*/, const GivenOption& given, std::optional<Optimize>& value) {
  value = given.is_negated ? Optimize::Off : Optimize::Now;
}

void parse(const BindOption& option, const GivenOption& given, int& value) {
  value = static_cast<int>(parse_whole_number(option.flag.name, *given.value, 0, option.flag.max));
}

void parse(const BindOption& option, const GivenOption& given, int64_t& bytes) {
  bytes = parse_byte_count(option.flag.name, *given.value, 1);
}

void parse(const BindOption& option, const GivenOption& given, double& seconds) {
  seconds = parse_positive_number(option.flag.name, *given.value, kMaxSeconds);
}

void parse(const BindOption& /*option*/, const GivenOption& given, std::string& value) {
  value = *given.value;
}

void parse(const BindOption& /*option*/, const GivenOption& given, std::filesystem::path& value) {
  value = *given.value;
}

template <class Enum>
  requires std::is_enum_v<Enum>
void parse(const BindOption& option, const GivenOption& given, Enum& value) {
  value = static_cast<Enum>(parse_choice_of(option, *given.value));
}

void parse(const BindOption& option, const GivenOption& given, std::vector<std::string>& names) {
  const std::string flag(option.flag.name);
  const bool are_backends = option.name == "backends";
  names = parse_name_list(flag, *given.value, are_backends ? "onednn,reference" : "mylib,mylib:1");
}

void parse(const BindOption& /*option*/, const GivenOption& given, std::vector<Pin>& pins) {
  for (const std::string& text : given.values) pins.push_back(parse_pin(text));
}

void parse(const BindOption& /*option*/, const GivenOption& given,
           std::vector<Exclusion>& exclusions) {
  for (const std::string& text : given.values) exclusions.push_back(parse_exclusion(text));
}

void parse(const BindOption& option, const GivenOption& given,
           std::map<std::string, std::string>& values) {
  const std::string flag(option.flag.name);
  for (const std::string& text : given.values) {
    NamedArgument named = split_named_argument(flag, text);
    if (!values.emplace(std::move(named.name), std::move(named.value)).second) {
      refuse(flag, text, "expected one " + flag + " for each name, found two");
    }
  }
}

void add_flag(CommandOptions command, const BindOption& option, GivenOption& given,
              const std::string& help, const std::string& heading) {
  const Flag& flag = option.flag;
  const std::string name(flag.name);
  if (flag.value.empty()) {
    command.add_flag(name, given.is_set, help, heading);
    if (flag.negation.empty()) return;
    command.add_flag(std::string(flag.negation), given.is_negated, std::string(flag.negation_help),
                     heading);
    return;
  }
  const std::string text = std::string(flag.value) + ": " + help;
  if (flag.is_repeatable) {
    command.add_repeatable(name, given.values, text, heading);
  } else {
    command.add_option(name, given.value, text, heading);
  }
}

}  // namespace

GivenOption& BindArguments::operator[](std::string_view name) { return given[index_of(name)]; }

const GivenOption& BindArguments::operator[](std::string_view name) const {
  return given[index_of(name)];
}

void add_bind_options(CommandOptions command, CommandBits of, BindArguments& arguments) {
  for (const BindOption& option : bind_options()) {
    if ((option.flag.commands & of) == 0) continue;
    add_flag(command, option, arguments[option.name], std::string(option.flag.help),
             std::string(option.flag.heading));
    // What it loads is listed beside what is used.
    if (option.name == "backends") add_backend_path_option(command, arguments.backend_paths);
  }
}

void add_bind_option(CommandOptions command, std::string_view name, BindArguments& arguments,
                     std::string_view help) {
  const BindOption& option = bind_option(name);
  add_flag(command, option, arguments[name], std::string(help.empty() ? option.flag.help : help),
           "");
}

void add_backend_path_option(CommandOptions command, std::vector<std::string>& paths) {
  command.add_repeatable("--backend-path", paths,
                         "PATH: a plug-in, or a folder of plug-ins, to load as well",
                         std::string(bind_option("backends").flag.heading));
}

Pin parse_pin(const std::string& text) {
  constexpr const char* kExpected =
      "expected NODES=BACKEND or NODES=BACKEND:ALGORITHM, such as conv1=onednn:jit";
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos) refuse("--pin", text, kExpected);
  const auto [nodes, kernel] = split_at(text, sign);
  const size_t colon = kernel.find(':');
  const auto [backend, algorithm] = split_at(kernel, colon);
  const bool lacks_algorithm = colon != std::string::npos && algorithm.empty();
  if (nodes.empty() || backend.empty() || lacks_algorithm) refuse("--pin", text, kExpected);
  return {.nodes = nodes, .backend = backend, .algorithm = algorithm};
}

Exclusion parse_exclusion(const std::string& text) {
  const size_t colon = text.find(':');
  const auto [backend, op] = split_at(text, colon);
  if (backend.empty() || (colon != std::string::npos && op.empty())) {
    refuse("--exclude", text, "expected BACKEND or BACKEND:OP, such as onednn:Conv");
  }
  return {.backend = backend, .op = op};
}

std::vector<std::string> parse_name_list(const std::string& flag, const std::string& text,
                                         const std::string& example) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (name.empty()) {
      refuse(flag, text, "expected names with commas between, such as " + example);
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse(flag, text, "expected each name once, found '" + name + "' twice");
    }
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

Backends backends_of(const std::vector<std::string>& paths) {
  Backends backends;
  for (const std::string& path : paths) backends.add_path(path);
  return backends;
}

BindOptions without_swap() { return {.cache = {.swap = false}}; }

BindOptions bind_options_of(const BindArguments& arguments, const BindOptions& preset) {
  BindOptions options = preset;
  for (size_t index = 0; index < arguments.given.size(); ++index) {
    const BindOption& option = bind_options()[index];
    const GivenOption& given = arguments.given[index];
    if (given == GivenOption{}) continue;
    if (given.is_set && given.is_negated) {
      throw Error(ErrorKind::InvalidArgument, std::string(option.flag.negation),
                  "expected either this or " + std::string(option.flag.name) + ", found both");
    }
    std::visit(
        [&]<class T>(const Field<T>& field) {
          if constexpr (requires(T& value) { parse(option, given, value); }) {
            parse(option, given, field.edit(options));
          } else {
            TESSERA_CHECK(false, "a flag's option has a type that is written as text");
          }
        },
        option.field.typed);
  }
  return options;
}

}  // namespace tessera::cli
