// The program `tessera`: runs the chosen command, and turns errors into messages and exit codes.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/arguments/command_line.h"
#include "cli/arguments/help_formatter.h"
#include "cli/commands/command.h"
#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "cli/process/interrupt.h"
#include "cli/reports/backends_report.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct CommandRow {
  const char* name;
  const char* summary;
  Command (*make)(CommandOptions command);
};

constexpr std::array kCommands = {
    CommandRow{"run", "Run a model once", make_run_command},
    CommandRow{"bench", "Measure how long a model takes to load, bind and run", make_bench_command},
    CommandRow{"explain", "Show which backend runs each step, how fast, and how close others are",
               make_explain_command},
    CommandRow{"diff", "Compare two plans: which steps differ, and what that costs",
               make_diff_command},
    CommandRow{"tune", "Measure which kernels run a model fastest", make_tune_command},
    CommandRow{"bundle", "Write one file with a model and all that it needs to start at once",
               make_bundle_command},
    CommandRow{"inspect", "Show the inputs, outputs, nodes and weights of a model",
               make_inspect_command},
    CommandRow{"plan-memory", "Place buffers of known lifetimes in as little memory as possible",
               make_plan_memory_command},
    CommandRow{"backends", "List the backends that can run models on this machine",
               make_backends_command},
    CommandRow{"doctor", "Say what makes models slow on this machine, and what to do",
               make_doctor_command},
    CommandRow{"cache", "Show, check and remove stored plans and measured times",
               make_cache_command},
    CommandRow{"verify", "Check a plug-in, or every kernel that could run a model",
               make_verify_command},
    CommandRow{"completion", "Print the completion for a shell, or the manual page",
               make_completion_command},
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

// Makes failed writes return errors that can be reported instead of raising signals that kill the
// program, for example if a reader closes its pipe or a file reaches the size limit. Also opens
// standard streams that the caller closed, so that no file opened later gets their descriptor.
void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    const bool is_closed = fcntl(descriptor, F_GETFD) == -1 && errno == EBADF;
    // Read-only, so that writing to the stream still fails.
    if (is_closed && open("/dev/null", O_RDONLY) != descriptor) std::_Exit(kMachineFailed);
  }
}

// Returns `code`, or kMachineFailed if the text cannot be written to stdout. If a reader closed the
// pipe, no message is printed.
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
  const Json json = error_json(error.kind(), error.where(), error.message());
  return print(is_json ? json_text(json) : "", exit_code(error.kind()));
}

ExitCode report_usage(const UsageMistake& mistake, bool is_json) {
  std::fprintf(stderr, "%s: %s\n", mistake.where.c_str(), printable(mistake.message).c_str());
  const Json json = error_json(ErrorKind::InvalidArgument, mistake.where, mistake.message);
  return print(is_json ? json_text(json) : "", kBadInput);
}

// Handles exceptions of CLI11. Help and version are regular output. Anything else is wrong usage
// that find_usage_mistake() does not detect.
ExitCode report_parse_error(const CLI::App& app, const CLI::ParseError& error, bool is_json) {
  std::ostringstream output;
  std::ostringstream errors;
  if (error.get_name() == "CallForVersion") {
    const VersionReport report = examine_versions();
    return print(is_json ? json_text(version_json(report)) : version_text(report, stdout_style()),
                 kFine);
  }
  if (app.exit(error, output, errors) == 0) return print(output.str(), kFine);
  return report_usage({command_path(app), error.what()}, is_json);
}

std::string footer_text() {
  std::string text = "Exit codes (docs/command_line.md):\n";
  for (const ExitCodeRow& row : kExitCodes) {
    text += "  " + std::to_string(row.code) + "  " + row.meaning + "\n";
  }
  return text +
         "\nExample:\n  tessera run model.onnx --random 1\n\n"
         "'tessera COMMAND --help' lists the options of a command.";
}

ExitCode run_command_line(int argc, char** argv, bool is_json) {
  CLI::App app("Runs neural networks with whatever libraries the machine has.", "tessera");
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", "tessera " + version(),
                       "print the version, and those of the backends");
  // Commands added after this line inherit the formatter.
  app.formatter(std::make_shared<HelpFormatter>(stdout_style()));
  app.footer(footer_text());
  CommandOptions program(app);
  std::vector<Command> commands;
  for (const CommandRow& row : kCommands) {
    commands.push_back(row.make(program.add_command(row.name, row.summary)));
  }
  const std::optional<UsageMistake> mistake =
      find_usage_mistake(app, {argv + std::min(1, argc), argv + argc});
  if (mistake) return report_usage(*mistake, is_json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error, is_json);
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
    const ExitCode code = run_command_line(argc, argv, is_json);
    Termination::exit_if_requested();
    return code;
  } catch (const Error& error) {
    Termination::exit_if_requested();
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
