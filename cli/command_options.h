// The options of a command, which CLI11 reads: its headers take seconds to compile, so no file of a
// command includes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace tessera::cli {

// A view of the command, which must outlive it. What options are read into must live until the
// command line was parsed. `help` of an option with a value begins with that value's name and ": "
// (HelpFormatter); `group` is the heading that help lists it under, "" the first.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& command) : command_(&command) {}

  void add_flag(const std::string& name, bool& value, const std::string& help,
                const std::string& group = "");
  void add_option(const std::string& name, std::string& value, const std::string& help,
                  const std::string& group = "");
  void add_option(const std::string& name, std::optional<std::string>& value,
                  const std::string& help, const std::string& group = "");
  // Takes one value each time it is given and may be given often.
  void add_repeatable(const std::string& name, std::vector<std::string>& values,
                      const std::string& help, const std::string& group = "");
  // Required until make_optional(name).
  void add_positional(const std::string& name, std::string& value, const std::string& help);
  void make_optional(const std::string& name);
  // What help ends with.
  void set_footer(const std::string& text);

  // A command of this command, of which one has to be given.
  CommandOptions add_command(const std::string& name, const std::string& summary);
  // Whether this command was given; to be asked after parsing.
  bool was_given() const;

 private:
  CLI::App* command_;
};

}  // namespace tessera::cli
