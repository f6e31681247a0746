// What main.cc needs of a command: each is one file, NAME_command.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace tessera::cli {

enum ExitCode : int {
  kFine = 0,
  kAnswerIsNo = 1,     // a mismatch, a miss
  kBadInput = 2,       // bad usage, or a file that cannot be what it is given as
  kMachineFailed = 3,  // memory, a device, an output that cannot be written
};

struct CommandResult {
  ExitCode exit_code = kFine;
  std::string output;  // for stdout
};

// Does what the parsed options ask for. Throws Error.
using Command = std::function<CommandResult()>;

// Each adds its options to `command`, and gives what to call when that was chosen.
Command make_run_command(CLI::App& command);
Command make_bench_command(CLI::App& command);
Command make_explain_command(CLI::App& command);
Command make_inspect_command(CLI::App& command);
Command make_plan_memory_command(CLI::App& command);
Command make_backends_command(CLI::App& command);
Command make_tune_command(CLI::App& command);
Command make_verify_command(CLI::App& command);
Command make_cache_command(CLI::App& command);

// An option that takes one value each time it is given and may be given often.
inline CLI::Option* add_repeatable(CLI::App& command, const std::string& name,
                                   std::vector<std::string>& values, const std::string& help) {
  return command.add_option(name, values, help)->allow_extra_args(false);
}

}  // namespace tessera::cli
