// Finds mistakes in a command line before CLI11 reads it. CLI11 reports missing arguments first,
// although the user's actual mistake may be a mistyped option, and it does not suggest similar
// names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/command_options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace tessera::cli {

struct UsageMistake {
  std::string where;    // "tessera run"
  std::string message;  // "there is no option '--thread'; did you mean '--threads'?"
};

// The mistake in `arguments` (without the program's name) to report to the user; nullopt if
// `program` and its commands can read the arguments, or if the user asks for help. An unknown
// option has priority over everything else; otherwise the first mistake is returned.
std::optional<UsageMistake> find_usage_mistake(const CLI::App& program,
                                               const std::vector<std::string>& arguments);

// Reads a text with options, as a shell splits it into words, which is the value of `option`.
// `add_options` adds those that it may have. Throws InvalidArgument for anything else.
void parse_option_text(const std::string& option, const std::string& text,
                       const std::function<void(CommandOptions options)>& add_options);

// The full name of a command, with the program's name: "tessera cache ls".
std::string command_path(const CLI::App& command);

}  // namespace tessera::cli
