// The interface between main.cc and the commands. Each command is one file, NAME_command.cc.
#pragma once

#include <functional>
#include <string>

#include "cli/arguments/command_options.h"

namespace tessera::cli {

// docs/command_line.md documents each code; `tessera --help` prints kExitCodes.
enum ExitCode : int {
  kFine = 0,
  kAnswerIsNo = 1,     // a mismatch or a cache miss
  kBadInput = 2,       // wrong usage, or an input file with wrong content
  kMachineFailed = 3,  // memory, a device, an output that cannot be written
};

struct ExitCodeRow {
  ExitCode code;
  const char* meaning;
};

inline constexpr ExitCodeRow kExitCodes[] = {
    {kFine, "fine: it was done, and the answer is yes"},
    {kAnswerIsNo, "the answer is no: a difference, a failed check, a miss"},
    {kBadInput, "bad input: the command line, or a file"},
    {kMachineFailed, "the machine failed: memory, device, disk; or Ctrl-C"},
};

struct CommandResult {
  ExitCode exit_code = kFine;
  std::string output;  // for stdout
};

// Executes the command with its parsed options. Throws Error.
using Command = std::function<CommandResult()>;

// Each function adds its options to `command` and returns the function to call if the user chose
// that command.
Command make_run_command(CommandOptions command);
Command make_bench_command(CommandOptions command);
Command make_diff_command(CommandOptions command);
Command make_explain_command(CommandOptions command);
Command make_inspect_command(CommandOptions command);
Command make_plan_memory_command(CommandOptions command);
Command make_backends_command(CommandOptions command);
Command make_doctor_command(CommandOptions command);
Command make_tune_command(CommandOptions command);
Command make_verify_command(CommandOptions command);
Command make_bundle_command(CommandOptions command);
Command make_cache_command(CommandOptions command);
Command make_completion_command(CommandOptions command);

}  // namespace tessera::cli
