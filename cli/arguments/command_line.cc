#include "cli/arguments/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string_view>

#include "base/errors/likely_name.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

bool is_positional(const CLI::Option& option) { return option.get_positional(); }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool is_repeatable(const CLI::Option& option) {
  return !takes_value(option) || option.get_items_expected_max() > 1;
}

// "-" alone is a file, and "-1" or "-.5" is a number.
bool looks_like_option(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && !(text[1] >= '0' && text[1] <= '9') && text[1] != '.';
}

std::string_view without_dashes(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('-'), text.size()));
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

// The command's positional arguments, such as "MODEL", in their order.
std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  std::vector<const CLI::Option*> positionals;
  for (const CLI::Option* option : app.get_options()) {
    if (is_positional(*option)) positionals.push_back(option);
  }
  return positionals;
}

// All option names, without their dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& long_names = option->get_lnames();
    names.insert(names.end(), long_names.begin(), long_names.end());
  }
  return names;
}

std::string see_help(const CLI::App& app, const std::string& what) {
  return "; '" + command_path(app) + " --help' lists " + what;
}

// Reads arguments in CLI11's order, from first to last.
class ArgumentReader {
 public:
  explicit ArgumentReader(const CLI::App& program) : app_(&program) {}

  std::optional<UsageMistake> read(const std::vector<std::string>& arguments) {
    for (size_t index = 0; index < arguments.size() && !is_over_; ++index) {
      const std::string& text = arguments[index];
      const bool has_next = index + 1 < arguments.size();
      if (text == "--" && !are_positionals_only_) {
        are_positionals_only_ = true;
      } else if (looks_like_option(text) && !are_positionals_only_) {
        const bool took_next = read_option(text, has_next ? &arguments[index + 1] : nullptr);
        if (took_next) ++index;
      } else {
        read_positional(text);
      }
    }
    if (asks_for_help_) return std::nullopt;
    if (unknown_option_) return unknown_option_;
    if (!is_over_) check_complete();
    return mistake_;
  }

 private:
  void note(const std::string& message) {
    if (!mistake_) mistake_ = {command_path(*app_), message};
  }

  // Returns whether `next` is the option's value.
  bool read_option(const std::string& text, const std::string* next) {
    const size_t sign = text.find('=');
    const std::string name = text.substr(0, sign);
    const CLI::Option* const option = app_->get_option_no_throw(name);
    if (option == nullptr || is_positional(*option)) {
      note_unknown_option(name);
      return false;
    }
    if (option == app_->get_help_ptr() || name == "--version") {
      asks_for_help_ = is_over_ = true;
      return false;
    }
    if (!seen_.insert(option).second && !is_repeatable(*option)) {
      note("expected '" + name + "' once, found it twice");
    }
    if (!takes_value(*option)) {
      if (sign != std::string::npos) note("'" + name + "' takes no value, found '" + text + "'");
      return false;
    }
    if (sign != std::string::npos) {
      check_value(name, text.substr(sign + 1));
      return false;
    }
    // In "--threads --json" the number is missing. If the second word is an unknown option, the
    // message names that option.
    const bool is_value = next != nullptr && !next->starts_with("--");
    if (is_value) {
      check_value(name, *next);
    } else {
      note("expected a value after '" + name + "', found " +
           (next == nullptr ? "nothing" : "'" + *next + "'"));
    }
    return is_value;
  }

  void check_value(const std::string& name, const std::string& value) {
    if (value.empty()) note("expected a value for '" + name + "', found an empty text");
  }

  void note_unknown_option(const std::string& name) {
    if (unknown_option_) return;
    std::string message = "there is no option '" + name + "'";
    const std::optional<std::string> likely =
        likely_name(without_dashes(name), option_names(*app_));
    const auto commands = commands_of(*app_);
    const auto has_option = [&](const CLI::App* command) {
      return command->get_option_no_throw(name) != nullptr;
    };
    if (likely) {
      message += "; did you mean '--" + *likely + "'?";
    } else if (std::any_of(commands.begin(), commands.end(), has_option)) {
      message += " before the command; write it after the command's name";
    } else {
      message += see_help(*app_, commands.empty() ? "the options" : "options and commands");
    }
    unknown_option_ = {command_path(*app_), message};
  }

  void read_positional(const std::string& text) {
    if (!commands_of(*app_).empty()) {
      read_command(text);
      return;
    }
    const std::vector<const CLI::Option*> positionals = positionals_of(*app_);
    if (positionals.empty()) {
      note("expected no argument besides options, found '" + text + "'");
    } else if (given_.size() < positionals.size()) {
      if (text.empty()) {
        note("expected " + positionals[given_.size()]->get_name() + ", found an empty text");
      }
    } else if (positionals.size() == 1) {
      note("expected one " + positionals[0]->get_name() + ", found '" + *given_[0] + "' and '" +
           text + "'");
    } else {
      note("expected " + std::to_string(positionals.size()) +
           " arguments besides options, found '" + text + "' after '" + *given_.back() + "'");
    }
    if (given_.size() < positionals.size()) given_.push_back(&text);
  }

  void read_command(const std::string& text) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(*app_)) {
      names.push_back(command->get_name());
      if (names.back() != text) continue;
      app_ = command;
      return;
    }
    std::string hint = did_you_mean(text, names);
    if (hint.empty() && text.ends_with(".onnx"))
      hint = "; did you mean 'tessera run " + text + "'?";
    if (hint.empty()) hint = see_help(*app_, "the commands");
    note("there is no command '" + text + "'" + hint);
    // If the command is unknown, nothing can be said about its options.
    is_over_ = true;
  }

  void check_complete() {
    if (!commands_of(*app_).empty()) {
      note("expected a command, found none" + see_help(*app_, "them"));
      return;
    }
    const std::vector<const CLI::Option*> positionals = positionals_of(*app_);
    if (given_.size() >= positionals.size()) return;
    const CLI::Option& missing = *positionals[given_.size()];
    if (!missing.get_required()) return;
    note("expected " + missing.get_name() + ", found none; '" + command_path(*app_) +
         " --help' has an example");
  }

  const CLI::App* app_;
  std::set<const CLI::Option*> seen_;
  std::vector<const std::string*> given_;  // positional arguments
  bool are_positionals_only_ = false;
  bool asks_for_help_ = false;
  bool is_over_ = false;
  std::optional<UsageMistake> unknown_option_;
  std::optional<UsageMistake> mistake_;
};

}  // namespace

std::optional<UsageMistake> find_usage_mistake(const CLI::App& program,
                                               const std::vector<std::string>& arguments) {
  return ArgumentReader(program).read(arguments);
}

void parse_option_text(const std::string& option, const std::string& text,
                       const std::function<void(CommandOptions options)>& add_options) {
  // CLI11 would take the name of an app that has one for a part of the text.
  CLI::App app;
  app.set_help_flag();
  add_options(CommandOptions(app));
  std::vector<std::string> words = CLI::detail::split_up(text);
  for (std::string& word : words) CLI::detail::remove_quotes(word);
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::InvalidArgument, option + " '" + text + "'", message);
  };
  if (const std::optional<UsageMistake> mistake = find_usage_mistake(app, words)) {
    refuse(mistake->message);
  }
  // CLI11 reads them from the last to the first.
  std::ranges::reverse(words);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
}

std::string command_path(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : command_path(*parent) + " ") + command.get_name();
}

}  // namespace tessera::cli
