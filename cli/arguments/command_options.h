// Adds options to a command. CLI11 reads them, but its headers take seconds to compile, so the
// files of commands do not include them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace tessera::cli {

// A view of the command, which must outlive it. The variables that options are read into must live
// until the command line was parsed. The `help` of an option with a value begins with that value's
// name and ": " (HelpFormatter). `group` is the heading under which help lists the option; "" is
// the first.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& command) : command_(&command) {}

  void add_flag(const std::string& name, bool& value, const std::string& help,
                const std::string& group = "");
  void add_option(const std::string& name, std::string& value, const std::string& help,
                  const std::string& group = "");
  void add_option(const std::string& name, std::optional<std::string>& value,
                  const std::string& help, const std::string& group = "");
  // An option that may be given several times, with one value each time.
  void add_repeatable(const std::string& name, std::vector<std::string>& values,
                      const std::string& help, const std::string& group = "");
  // Required until make_optional(name) is called.
  void add_positional(const std::string& name, std::string& value, const std::string& help);
  void make_optional(const std::string& name);
  void add_optional_positional(const std::string& name, std::optional<std::string>& value,
                               const std::string& help);
  // The text at the end of the help.
  void set_footer(const std::string& text);

  // Adds a subcommand; the user must give exactly one of them.
  CommandOptions add_command(const std::string& name, const std::string& summary);
  // Whether this command was given; call it after parsing.
  bool was_given() const;

  // The whole program, which this command belongs to.
  const CLI::App& program() const;

 private:
  CLI::App* command_;
};

}  // namespace tessera::cli
