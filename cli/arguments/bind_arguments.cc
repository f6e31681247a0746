#include "cli/arguments/bind_arguments.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <type_traits>
#include <utility>

#include "api/options/argument_text.h"
#include "base/errors/check.h"

namespace tessera::cli {
namespace {

constexpr double kMaxSeconds = 1e6;

[[noreturn]] void refuse(std::string_view option, const std::string& text,
                         const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
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
  const bool are_backends = option.name == "backends";
  names = parse_name_list(option.flag.name, *given.value,
                          are_backends ? "onednn,reference" : "mylib,mylib:1");
}

void parse(const BindOption& option, const GivenOption& given, std::vector<Pin>& pins) {
  for (const std::string& text : given.values) pins.push_back(parse_pin(option.flag.name, text));
}

void parse(const BindOption& option, const GivenOption& given, std::vector<Exclusion>& exclusions) {
  for (const std::string& text : given.values) {
    exclusions.push_back(parse_exclusion(option.flag.name, text));
  }
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
    // Help lists the option that loads plug-ins beside the one that selects backends.
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
