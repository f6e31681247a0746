// `tessera verify`: checks a plug-in, or all candidates for a model.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/options/argument_text.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/output/json_output.h"
#include "cli/output/quantities.h"
#include "cli/output/text_table.h"
#include "cli/plans/costs_report.h"
#include "cli/plans/plan_json.h"
#include "cli/plans/plan_summary.h"
#include "cli/reports/progress.h"
#include "microbench/verify_in_worker.h"
#include "tessera/tessera.h"
#include "verify/verify_backend.h"

namespace tessera::cli {
namespace {

// The backend that all others are compared with.
constexpr std::string_view kReference = "reference";

// The verdicts on one backend's candidates for one op or group.
struct VerdictCount {
  int fine = 0;
  int refused = 0;
  int unchecked = 0;
  double error = 0;  // the largest error found
  double tolerance = 0;
};

std::string error_text(double error) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", error);
  return error == 0 ? "0" : text.data();
}

// By backend and op.
using VerdictCounts = std::map<std::pair<std::string, std::string>, VerdictCount>;

VerdictCounts count_verdicts(const ModelVerification& verification) {
  VerdictCounts counts;
  for (const CandidateDescription& candidate : verification.candidates) {
    if (candidate.backend == kReference) continue;
    VerdictCount& count = counts[{candidate.backend, candidate.op}];
    const bool is_checked =
        candidate.verdict == Verdict::Fine || candidate.verdict == Verdict::Refused;
    if (!is_checked) ++count.unchecked;
    if (candidate.verdict == Verdict::Refused) ++count.refused;
    if (candidate.verdict == Verdict::Fine) ++count.fine;
    if (candidate.error >= count.error) {
      count.error = candidate.error;
      count.tolerance = candidate.tolerance;
    }
  }
  return counts;
}

std::string verdict_table(const VerdictCounts& counts, const TextStyle& style) {
  TextTable table({{"backend"},
                   {"op", Align::Left, true},
                   {"passed", Align::Right},
                   {"failed", Align::Right},
                   {"not checked", Align::Right},
                   {"max diff", Align::Right},
                   {"tolerance", Align::Right}});
  for (const auto& [key, count] : counts) {
    const bool is_checked = count.fine + count.refused > 0;
    table.add_row({key.first, op_text(key.second, style), std::to_string(count.fine),
                   std::to_string(count.refused), std::to_string(count.unchecked),
                   is_checked ? error_text(count.error) : "-",
                   is_checked ? error_text(count.tolerance) : "-"});
  }
  return table.text(style);
}

std::string verification_text(const ModelVerification& verification, const TextStyle& style) {
  const VerdictCounts counts = count_verdicts(verification);
  std::string text = verdict_table(counts, style);
  if (verification.tuning.is_stopped) text += "stopped early: not all candidates were checked\n";
  for (const std::string& note : verification.tuning.notes) text += wrapped("note: " + note, style);
  const std::string refused = refused_text(verification.candidates, style);
  text += refused.empty() ? "" : "\n" + refused;
  int64_t passed = 0;
  int64_t failed = 0;
  int64_t unchecked = 0;
  for (const auto& [key, count] : counts) {
    passed += count.fine;
    failed += count.refused;
    unchecked += count.unchecked;
  }
  if (passed + failed == 0) {
    const std::string why =
        unchecked == 0 ? "no backend but the reference offers a kernel"
                       : count_text(unchecked, "kernel was", "kernels were") + " not checked";
    return text + wrapped("nothing was compared: " + why, style);
  }
  return text + "\n" +
         wrapped((failed == 0
                      ? count_text(passed, "kernel agrees", "kernels agree") + " with the reference"
                      : count_text(failed, "kernel", "kernels") + " FAILED, " +
                            std::to_string(passed) + " agree with the reference") +
                     "; equal ones were run once" +
                     (unchecked == 0 ? "" : "; " + std::to_string(unchecked) + " were not checked"),
                 style);
}

Json verification_json(const std::string& model, const ModelVerification& verification) {
  return {{"model", model},
          {"is_stopped", verification.tuning.is_stopped},
          {"notes", verification.tuning.notes},
          {"candidates", to_json(verification.candidates)}};
}

// The exit code is 1 if a candidate is refused. Candidates that could not be built are not checked.
// Throws Error if the model cannot be loaded or bound.
CommandResult verify_model(const ModelArguments& arguments, bool is_json) {
  const ModelRequest request(arguments, MissingInputs::AreRandom);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  const ModelVerification verification = request.verify(loaded);
  const auto is_any = [&](Verdict verdict) {
    return std::any_of(verification.candidates.begin(), verification.candidates.end(),
                       [&](const CandidateDescription& each) {
                         return each.backend != kReference && each.verdict == verdict;
                       });
  };
  const bool is_nothing_compared = is_any(Verdict::NotMeasured) && !is_any(Verdict::Fine);
  const bool has_failed =
      is_any(Verdict::Refused) || is_any(Verdict::NotBuilt) || is_nothing_compared;
  return {has_failed ? kAnswerIsNo : kFine,
          is_json ? json_text(verification_json(loaded.description.file, verification))
                  : verification_text(verification, stdout_style())};
}

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

std::string ops_text(const verification::Report& report, const TextStyle& style) {
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
  std::string text = has_ops ? "\n" + ops.text(style) : "";
  if (!unsupported.empty()) text += "\n" + wrapped("not supported: " + unsupported, style);
  return text;
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
  text += ops_text(report, style);
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
