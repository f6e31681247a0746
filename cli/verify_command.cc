// `tessera verify`: tries a plug-in, or everything that could run a model (verify_model.h).
#include <memory>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/named_argument.h"
#include "cli/text_table.h"
#include "cli/verify_model.h"
#include "tessera/tessera.h"
#include "verify/verify_backend.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kMostCases = 1000;

struct VerifyArguments {
  std::string library;
  ModelArguments model;
  std::string seed = "1";
  std::string cases = "1";
  bool is_json = false;
};

std::vector<std::string> cells(const verification::CheckCount& count) {
  return {count.name, std::to_string(count.passed), std::to_string(count.failed),
          std::to_string(count.skipped)};
}

std::string verify_text(const std::string& library, const verification::VerifiedBackend& verified) {
  const verification::Report& report = verified.report;
  std::string text = verified.name.empty()
                         ? printable(library) + "\n"
                         : "backend " + printable(verified.name + " " + verified.version) + "\n";
  TextTable checks(
      {{"check"}, {"passed", Align::Right}, {"failed", Align::Right}, {"skipped", Align::Right}});
  for (const verification::CheckCount& count : report.checks()) checks.add_row(cells(count));
  checks.add_row(cells(report.total()));
  text += "\n" + checks.text();
  TextTable ops({{"op"},
                 {"cases", Align::Right},
                 {"accepted", Align::Right},
                 {"candidates", Align::Right},
                 {"refusal", Align::Left, true}});
  bool has_ops = false;
  int64_t refused = 0;
  for (const verification::OpCount& op : report.ops()) {
    if (op.accepted == 0) {
      ++refused;
      continue;
    }
    has_ops = true;
    ops.add_row({op.op, std::to_string(op.cases), std::to_string(op.accepted),
                 std::to_string(op.candidates), op.refusal});
  }
  if (has_ops) text += "\n" + ops.text();
  if (refused > 0) text += "\n" + std::to_string(refused) + " further ops and groups: refused\n";
  for (const verification::Failure& failure : report.failures()) {
    text += "\nFAILED " + failure.check + ": " + printable(failure.place) + "\n  " +
            printable(failure.message) + "\n";
  }
  const auto told = static_cast<int64_t>(report.failures().size());
  if (report.total().failed > told) {
    text += "\nand " + std::to_string(report.total().failed - told) + " more\n";
  }
  return text;
}

Json verify_json(const std::string& library, const verification::VerifiedBackend& verified) {
  Json checks = Json::array();
  for (const verification::CheckCount& count : verified.report.checks()) {
    checks.push_back({{"name", count.name},
                      {"passed", count.passed},
                      {"failed", count.failed},
                      {"skipped", count.skipped}});
  }
  Json ops = Json::array();
  for (const verification::OpCount& op : verified.report.ops()) {
    ops.push_back({{"op", op.op},
                   {"cases", op.cases},
                   {"accepted", op.accepted},
                   {"candidates", op.candidates},
                   {"refusal", op.refusal}});
  }
  Json failures = Json::array();
  for (const verification::Failure& failure : verified.report.failures()) {
    failures.push_back(
        {{"check", failure.check}, {"place", failure.place}, {"message", failure.message}});
  }
  const verification::CheckCount total = verified.report.total();
  return {{"file", library},
          {"backend", verified.name},
          {"version", verified.version},
          {"passed", total.passed},
          {"failed", total.failed},
          {"skipped", total.skipped},
          {"checks", std::move(checks)},
          {"ops", std::move(ops)},
          {"failures", std::move(failures)}};
}

CommandResult verify(const VerifyArguments& arguments) {
  const bool has_model = !arguments.model.model.empty();
  if (has_model == !arguments.library.empty()) {
    throw Error(ErrorKind::InvalidArgument, "command line",
                has_model ? "expected MODEL or --backend, found both"
                          : "expected MODEL or --backend, found neither");
  }
  if (has_model) return verify_model(arguments.model, arguments.is_json);
  verification::VerifyOptions options;
  options.seed = parse_whole_number("--seed", arguments.seed);
  const uint64_t cases = parse_whole_number("--cases", arguments.cases);
  if (cases < 1 || cases > kMostCases) {
    throw Error(ErrorKind::InvalidArgument, "--cases",
                "expected 1 to " + std::to_string(kMostCases) + ", found " + arguments.cases);
  }
  options.cases = static_cast<int>(cases);
  const verification::VerifiedBackend verified =
      verification::verify_backend(arguments.library, options);
  const std::string output = arguments.is_json ? json_text(verify_json(arguments.library, verified))
                                               : verify_text(arguments.library, verified);
  return {verified.report.total().failed == 0 ? kFine : kAnswerIsNo, output};
}

}  // namespace

Command make_verify_command(CLI::App& command) {
  const auto arguments = std::make_shared<VerifyArguments>();
  add_model_options(command, arguments->model, MissingInputs::AreRandom, Prices::AreNotAsked);
  command.get_option("MODEL")->required(false);
  add_measuring_options(command, arguments->model.bind);
  command.add_option("--backend", arguments->library, "the plug-in to try");
  command.add_option("--seed", arguments->seed, "draws other elements (default: 1)");
  command.add_option("--cases", arguments->cases, "draws of elements for each case (default: 1)");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.footer(
      "With MODEL: every candidate of every backend for it, against the reference on true values.\n"
      "With --backend: one plug-in, on a table of ops, layouts and ops of its own; --seed and\n"
      "--cases count then. Exit code 1 where something failed.\n\n"
      "Example:\n"
      "  tessera verify resnet50.onnx\n"
      "  tessera verify --backend build/libmine.so --cases 3");
  return [arguments] { return verify(*arguments); };
}

}  // namespace tessera::cli
