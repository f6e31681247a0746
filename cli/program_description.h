// The commands and options of the program as data, read from the parser that `tessera --help`
// prints too. Completion and the manual page are made from it.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace tessera::cli {

struct OptionDescription {
  std::vector<std::string> names;  // "-h", "--help"
  std::string value;               // "FILE"; "" if it takes none
  std::string help;
  std::string heading;  // the heading under which help lists it
  bool is_repeatable = false;
  std::vector<std::string> choices;  // the values that it may have; empty: any
};

struct ArgumentDescription {
  std::string name;  // "MODEL"
  std::string help;
  bool is_needed = false;
};

struct CommandDescription {
  std::string name;
  std::string summary;
  std::string footer;
  std::vector<ArgumentDescription> arguments;  // besides options, in their order
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

CommandDescription describe_command(const CLI::App& app);

}  // namespace tessera::cli
