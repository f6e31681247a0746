// The program `tessera`: picks the command, and turns errors into messages and exit codes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct CommandRow {
  const char* name;
  const char* summary;
  Command (*make)(CLI::App& command);
};

constexpr std::array kCommands = {
    CommandRow{"run", "Run a model once", make_run_command},
    CommandRow{"bench", "Measure how long a model takes to load, bind and run", make_bench_command},
    CommandRow{"explain", "Show who does each step, how fast, and who refused",
               make_explain_command},
    CommandRow{"tune", "Measure what could run a model fastest", make_tune_command},
    CommandRow{"inspect", "Show what a model is made of", make_inspect_command},
    CommandRow{"plan-memory", "Place buffers in the smallest memory", make_plan_memory_command},
    CommandRow{"backends", "List what can run models here", make_backends_command},
    CommandRow{"cache", "Show and clear what was found out before", make_cache_command},
    CommandRow{"verify", "Check a plug-in, or all that could run a model", make_verify_command},
};

ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidModel:
    case ErrorKind::InvalidArgument:
    case ErrorKind::Unsupported:
    case ErrorKind::Corrupt:
      return kBadInput;
    case ErrorKind::CacheMiss:
      return kAnswerIsNo;
    case ErrorKind::OutOfMemory:
    case ErrorKind::DeviceFailed:
    case ErrorKind::Internal:
    case ErrorKind::Cancelled:
      return kMachineFailed;
  }
  return kMachineFailed;
}

// Failed writes come back as errors to report, not as signals that kill: a reader that closed its
// pipe, a file that reached the limit of its size. And a standard stream that the caller closed
// must not become the number of a file opened later.
void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    const bool is_closed = fcntl(descriptor, F_GETFD) == -1 && errno == EBADF;
    // Only for reading, so that writing to it still fails.
    if (is_closed && open("/dev/null", O_RDONLY) != descriptor) std::_Exit(kMachineFailed);
  }
}

// Gives kMachineFailed where the text does not reach stdout, else `code`. A reader that stopped
// reading needs no message.
ExitCode print(const std::string& text, ExitCode code) {
  if (text.empty()) return code;
  errno = 0;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) == 0 && is_written) return code;
  if (errno != EPIPE && errno != EBADF) {
    std::fprintf(stderr, "tessera: DeviceFailed: stdout: %s\n", std::strerror(errno));
  }
  return kMachineFailed;
}

ExitCode report(const Error& error, bool is_json) {
  std::string text = error.what();
  if (error.kind() == ErrorKind::Internal) text += " (a bug in Tessera: please report it)";
  std::fprintf(stderr, "tessera: %s\n", printable(text).c_str());
  const Json json = {
      {"error",
       {{"kind", name(error.kind())}, {"where", error.where()}, {"message", error.message()}}}};
  return print(is_json ? json_text(json) : "", exit_code(error.kind()));
}

// What CLI11 threw: help and version are answers, anything else is bad usage.
ExitCode report_usage(const CLI::App& app, const CLI::ParseError& error, bool is_json) {
  std::ostringstream output;
  std::ostringstream errors;
  if (app.exit(error, output, errors) == 0) return print(output.str(), kFine);
  // CLI11 only misses a command where there is one that it does not know.
  const std::vector<std::string> unknown = app.remaining();
  const bool is_unknown_command = app.get_subcommands().empty() && !unknown.empty();
  const std::string message =
      is_unknown_command ? "There is no command or option " + unknown[0] : error.what();
  std::fprintf(stderr, "%s\nRun with --help for more information.\n", printable(message).c_str());
  const Json json = {{"error",
                      {{"kind", name(ErrorKind::InvalidArgument)},
                       {"where", "command line"},
                       {"message", message}}}};
  return print(is_json ? json_text(json) : "", kBadInput);
}

ExitCode run_command_line(int argc, char** argv, bool is_json) {
  CLI::App app("Runs neural networks with whatever libraries the machine has.", "tessera");
  app.set_version_flag("--version", "tessera " + version());
  app.require_subcommand(1);
  app.footer(
      "Example:\n  tessera run model.onnx --random 1\n\n"
      "'tessera COMMAND --help' says what a command can do.");
  std::vector<Command> commands;
  for (const CommandRow& row : kCommands) {
    commands.push_back(row.make(*app.add_subcommand(row.name, row.summary)));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, is_json);
  }
  size_t chosen = 0;
  while (!app.got_subcommand(kCommands[chosen].name)) ++chosen;
  const CommandResult result = commands[chosen]();
  return print(result.output, result.exit_code);
}

ExitCode run_and_report(int argc, char** argv) {
  const bool is_json = std::any_of(argv + std::min(1, argc), argv + argc, [](const char* argument) {
    return std::string_view(argument) == "--json";
  });
  try {
    return run_command_line(argc, argv, is_json);
  } catch (const Error& error) {
    return report(error, is_json);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::OutOfMemory, "", "there is not enough memory"), is_json);
  } catch (const std::exception& error) {
    return report(Error(ErrorKind::Internal, "", error.what()), is_json);
  }
}

}  // namespace
}  // namespace tessera::cli

int main(int argc, char** argv) {
  tessera::cli::prepare_streams();
  return tessera::cli::run_and_report(argc, argv);
}
