// What is wrong with a command line, said before CLI11 reads it: CLI11 names what is missing first,
// although a mistyped option is what the user can correct, and knows no likely names.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace tessera::cli {

struct UsageMistake {
  std::string where;    // "tessera run"
  std::string message;  // "there is no option '--thread'; did you mean '--threads'?"
};

// The mistake in `arguments` (without the program's name) that the user should hear of; nullopt
// where `program` and its commands can read them, and where help is asked for. An unknown option
// counts before anything else; else what comes first.
std::optional<UsageMistake> find_usage_mistake(const CLI::App& program,
                                               const std::vector<std::string>& arguments);

// "tessera cache ls": the command as it is called.
std::string command_path(const CLI::App& command);

}  // namespace tessera::cli
