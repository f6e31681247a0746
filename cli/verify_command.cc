// `tessera verify`: checks a plug-in, or all candidates for a model (verify_model.h).
#include <memory>
#include <string>

#include "api/argument_text.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/text_table.h"
#include "cli/verify_model.h"
#include "microbench/verify_in_worker.h"
#include "tessera/tessera.h"
#include "verify/verify_backend.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMaxCases = 1000;
constexpr double kMaxTimeoutSeconds = 86400;

struct VerifyArguments {
  std::string library;
  ModelArguments model;
  std::string seed = "1";
  std::string cases = "1";
  std::string timeout = "60";
  bool is_json = false;
};

// "checking Conv, case 3 of 12: runs".
std::string step_text(const verification::VerifyStep& step) {
  std::string text = "checking " + step.subject.substr(step.subject.starts_with("op ") ? 3 : 0);
  if (step.case_count > 0) {
    text += ", case " + std::to_string(step.case_number) + " of " + std::to_string(step.case_count);
  }
  return text + ": " + step.check;
}

// Runs the checks in another process, so that a plug-in that crashes ends only that one; in this
// process if the user asks for it, or if no other can be used.
verification::VerifiedBackend verify(const VerifyArguments& arguments,
                                     const verification::VerifyOptions& options,
                                     const tuning::VerifyWorkerOptions& limits) {
  Progress progress;
  tuning::VerifyWorkerOptions worker = limits;
  worker.watcher = [&](const verification::VerifyStep& step) { progress.show(step_text(step)); };
  if (!arguments.model.bind["in_process"].is_set) {
    try {
      return tuning::verify_in_worker(arguments.library, options, worker);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::DeviceFailed) throw;
      say_warning("the plug-in is judged in this process, which ends if it crashes: " +
                  error.where() + ": " + error.message() +
                  "; `make demo` or `tools/build release tessera_worker` builds the worker");
    }
  }
  return verification::verify_backend(
      arguments.library, options,
      [&](const verification::VerifyStep& step, verification::VerifiedBackend&) {
        worker.watcher(step);
      });
}

std::vector<std::string> cells(const verification::CheckCount& count) {
  return {count.name, std::to_string(count.passed), std::to_string(count.failed),
          std::to_string(count.skipped)};
}

std::string verify_text(const std::string& library, const verification::VerifiedBackend& verified,
                        const TextStyle& style) {
  const verification::Report& report = verified.report;
  std::string text = verified.name.empty()
                         ? wrapped(library, style)
                         : wrapped("backend " + verified.name + " " + verified.version, style);
  TextTable checks(
      {{"check"}, {"passed", Align::Right}, {"failed", Align::Right}, {"skipped", Align::Right}});
  for (const verification::CheckCount& count : report.checks()) checks.add_row(cells(count));
  checks.add_row(cells(report.total()));
  text += "\n" + checks.text(style);
  TextTable ops(
      {{"op"}, {"cases", Align::Right}, {"accepted", Align::Right}, {"candidates", Align::Right}});
  bool has_ops = false;
  std::string unsupported;
  for (const verification::OpCount& op : report.ops()) {
    if (op.accepted == 0) {
      unsupported += (unsupported.empty() ? "" : ", ") + op.op;
      continue;
    }
    has_ops = true;
    ops.add_row({op.op, std::to_string(op.cases), std::to_string(op.accepted),
                 std::to_string(op.candidates)});
  }
  if (has_ops) text += "\n" + ops.text(style);
  if (!unsupported.empty()) text += "\n" + wrapped("not supported: " + unsupported, style);
  for (const verification::Failure& failure : report.failures()) {
    const std::string location = "FAILED " + failure.check + ": " + failure.location;
    text += "\n" + (failure.detail.empty()
                        ? wrapped(location, style) + wrapped(failure.message, style, "  ")
                        : wrapped(location + ": " + failure.message, style) +
                              wrapped(failure.detail, style, "  "));
  }
  const auto listed = static_cast<int64_t>(report.failures().size());
  if (report.total().failed > listed) {
    text += "\nand " + std::to_string(report.total().failed - listed) + " more\n";
  }
  const std::string skipped =
      report.total().skipped == 0 ? "" : ", " + std::to_string(report.total().skipped) + " skipped";
  const std::string verdict =
      report.total().failed == 0
          ? "all " + count_text(report.total().passed, "check") + " passed" + skipped
          : count_text(report.total().failed, "check") + " FAILED, " +
                std::to_string(report.total().passed) + " passed" + skipped;
  return text + "\n" + wrapped(verdict + "; docs/backends.md says what each checks", style);
}

Json verify_json(const std::string& library, const verification::VerifiedBackend& verified) {
  Json checks = Json::array();
  for (const verification::CheckCount& count : verified.report.checks()) {
    checks.push_back({{"check", count.name},
                      {"passed_count", count.passed},
                      {"failed_count", count.failed},
                      {"skipped_count", count.skipped}});
  }
  Json ops = Json::array();
  for (const verification::OpCount& op : verified.report.ops()) {
    ops.push_back({{"op", op.op},
                   {"case_count", op.cases},
                   {"accepted_count", op.accepted},
                   {"candidate_count", op.candidates},
                   {"reason", op.refusal}});
  }
  Json failures = Json::array();
  for (const verification::Failure& failure : verified.report.failures()) {
    failures.push_back({{"check", failure.check},
                        {"where", failure.location},
                        {"message", failure.message},
                        {"detail", failure.detail}});
  }
  const verification::CheckCount total = verified.report.total();
  return {{"file", library},
          {"backend", verified.name},
          {"version", verified.version},
          {"passed_count", total.passed},
          {"failed_count", total.failed},
          {"skipped_count", total.skipped},
          {"checks", std::move(checks)},
          {"ops", std::move(ops)},
          {"failures", std::move(failures)}};
}

// An option without any effect is an error, with any value.
void check_has_effect(const VerifyArguments& arguments, bool has_model) {
  const VerifyArguments none;
  if (has_model) {
    const bool has_others = arguments.seed != none.seed || arguments.cases != none.cases ||
                            arguments.timeout != none.timeout;
    if (!has_others) return;
    throw Error(ErrorKind::InvalidArgument, "command line",
                "--seed, --cases and --timeout have an effect only with --backend");
  }
  ModelArguments of_model = arguments.model;
  of_model.bind["in_process"] = {};
  if (of_model == none.model) return;
  throw Error(ErrorKind::InvalidArgument, "command line",
              "with --backend, only --seed, --cases, --timeout and --in-process have an effect; "
              "the other options are for MODEL");
}

CommandResult verify(const VerifyArguments& arguments) {
  const bool has_model = !arguments.model.model.empty();
  if (has_model == !arguments.library.empty()) {
    throw Error(ErrorKind::InvalidArgument, "command line",
                std::string("expected MODEL or --backend, found ") +
                    (has_model ? "both" : "neither") + "; 'tessera verify --help' has an example");
  }
  check_has_effect(arguments, has_model);
  if (has_model) return verify_model(arguments.model, arguments.is_json);
  verification::VerifyOptions options;
  options.seed = parse_whole_number("--seed", arguments.seed);
  const uint64_t cases = parse_whole_number("--cases", arguments.cases);
  if (cases < 1 || cases > kMaxCases) {
    throw Error(ErrorKind::InvalidArgument, "--cases",
                "expected 1 to " + std::to_string(kMaxCases) + ", found " + arguments.cases);
  }
  options.cases = static_cast<int>(cases);
  const tuning::VerifyWorkerOptions worker = {
      .step_timeout_seconds =
          parse_positive_number("--timeout", arguments.timeout, kMaxTimeoutSeconds)};
  const verification::VerifiedBackend verified = verify(arguments, options, worker);
  const std::string output = arguments.is_json
                                 ? json_text(verify_json(arguments.library, verified))
                                 : verify_text(arguments.library, verified, stdout_style());
  return {verified.report.total().failed == 0 ? kFine : kAnswerIsNo, output};
}

}  // namespace

Command make_verify_command(CommandOptions command) {
  const auto arguments = std::make_shared<VerifyArguments>();
  add_model_options(command, kVerifyCommand, arguments->model, MissingInputs::AreRandom);
  command.make_optional("MODEL");
  command.add_option("--backend", arguments->library, "PATH: the plug-in to check");
  command.add_option("--seed", arguments->seed, "SEED: a seed of random elements (default: 1)");
  command.add_option("--cases", arguments->cases,
                     "N: times to check each case, with new elements (default: 1)");
  command.add_option("--timeout", arguments->timeout,
                     "SECONDS: the time that one call of the plug-in may take (default: 60)");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer(
      "With MODEL: compares every kernel that backends offer for it with the reference.\n"
      "With --backend: checks one plug-in on ops of many shapes and types, its layouts and its "
      "own\n"
      "ops; only this uses --seed, --cases and --timeout. If the plug-in crashes, hangs or ends "
      "its\n"
      "process, the check fails and the next one begins; with --in-process (for a debugger) "
      "tessera\n"
      "ends with it. Exit code 1 if a check failed.\n\n"
      "Example:\n"
      "  tessera verify resnet50.onnx\n"
      "  tessera verify --backend build/libmine.so --cases 3");
  return [arguments] { return verify(*arguments); };
}

}  // namespace tessera::cli
