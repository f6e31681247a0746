// `tessera explain`: which backend computes each step, how long it takes, and why others do not.
#include <numeric>

#include "api/options/argument_text.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/commands/measure_steps.h"
#include "cli/output/staged_files.h"
#include "cli/plans/explain_report.h"
#include "cli/plans/plan_summary.h"
#include "cli/reports/cache_report.h"

namespace tessera::cli {
namespace {

constexpr double kMaxMarginSeconds = 3600;

struct ExplainArguments {
  ModelArguments model;
  std::optional<std::string> node;
  std::optional<std::string> kernel;  // the node whose kernel is printed
  std::string form = "source";        // of the kernel
  std::optional<std::string> runs;
  std::string margins = "2";
  std::string onnx_file;  // "" for none
  std::string page_file;  // "" for none
  bool shows_candidates = false;
  bool is_json = false;
};

void write_files(const ExplainArguments& arguments, const ModelRequest& request,
                 const LoadedModel& loaded, const ExplainReport& report) {
  StagedFiles files;
  if (!arguments.onnx_file.empty()) {
    files.write_text(arguments.onnx_file, request.to_onnx(loaded, plan_notes(report)));
  }
  if (!arguments.page_file.empty()) files.write_text(arguments.page_file, plan_page(report));
  files.commit();
}

KernelForm parse_form(const std::string& form) {
  const std::optional<KernelForm> found = kernel_form(form);
  if (found) return *found;
  throw Error(ErrorKind::InvalidArgument, "argument '--form'",
              "expected expression, source or assembly, found '" + form + "'");
}

// The texts of the kernels of these steps.
CommandResult print_kernels(const ExplainArguments& arguments, const Executor& executor,
                            const PlanDescription& plan) {
  const KernelForm form = parse_form(arguments.form);
  Json json = Json::array();
  std::string texts;
  for (const size_t index : find_steps(plan, *arguments.kernel)) {
    const PlanStep& step = plan.steps[index];
    const std::optional<std::string> text = executor.kernel_text(index, form);
    if (!text) {
      throw Error(ErrorKind::Unsupported, "node '" + step.name + "' (" + step.op + ")",
                  "expected a kernel that was compiled here and has this text (" + arguments.form +
                      "), found one of " + step.backend +
                      (step.algorithm.empty() ? "" : ":" + step.algorithm) + ", which has none");
    }
    json.push_back(
        {{"step", index}, {"name", step.name}, {"form", arguments.form}, {"text", *text}});
    texts += *text + (text->ends_with('\n') ? "" : "\n");
  }
  return {kFine, arguments.is_json ? json_text({{"kernels", json}}) : texts};
}

// What `explain` prints about the chosen steps.
std::string answer_text(const ExplainArguments& arguments, const ExplainReport& report,
                        const std::vector<size_t>& steps, const CacheReport& caches) {
  const TextStyle style = stdout_style();
  std::string text =
      arguments.node ? explain_steps_text(report, steps, style) : explain_text(report, style);
  if (arguments.node || arguments.shows_candidates) {
    text += explain_costs_text(report, steps, style);
  }
  if (!arguments.node) text += origins_text(caches, style);
  for (const std::string& file : {arguments.onnx_file, arguments.page_file}) {
    if (!file.empty()) text += wrapped("wrote " + file, style);
  }
  return text;
}

CommandResult explain(const ExplainArguments& arguments) {
  if (arguments.kernel) parse_form(arguments.form);
  const RunLimit limit = parse_run_limit(arguments.runs);
  const double margin_seconds =
      arguments.margins == "0"
          ? 0
          : parse_positive_number("--margins", arguments.margins, kMaxMarginSeconds);
  check_writable_file("--onnx", arguments.onnx_file);
  check_writable_file("--html", arguments.page_file);
  BindOptions preset = without_swap();
  preset.tune.describes_candidates = true;
  preset.tune.margin_search_seconds = margin_seconds;
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, preset);
  const Clock::time_point origin = Clock::now();
  const LoadedModel loaded = request.load(origin, /*keeps_all_values=*/false);
  BoundModel bound = request.bind(loaded, origin);
  ExplainReport report = describe_bound(loaded, bound, request);
  report.margin_seconds = margin_seconds;
  if (arguments.kernel) return print_kernels(arguments, bound.executor, report.plan);
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  if (arguments.node) steps = find_steps(report.plan, *arguments.node);
  measure_steps({{{&bound, &report}}}, limit, request.progress());
  request.progress().show("writing the report");
  write_files(arguments, request, loaded, report);
  if (arguments.is_json) {
    Json json = explain_json(report, steps);
    json["cache"] = cache_json(bound.executor.cache_report());
    return {kFine, json_text(json)};
  }
  return {kFine, answer_text(arguments, report, steps, bound.executor.cache_report())};
}

}  // namespace

Command make_explain_command(CommandOptions command) {
  const auto arguments = std::make_shared<ExplainArguments>();
  add_model_options(command, kExplainCommand, arguments->model, MissingInputs::AreRandom);
  command.add_option("--node", arguments->node,
                     "NAME: show everything about the steps of a node; NAME*: of all\n"
                     "nodes whose names begin with NAME");
  command.add_option("--kernel", arguments->kernel,
                     "NAME: print only the code that was compiled for the step of a node");
  command.add_option("--form", arguments->form,
                     "expression|source|assembly: what --kernel prints (default source)");
  command.add_option("--runs", arguments->runs,
                     "N: runs to take medians of (default: up to 10 in 2 seconds)");
  command.add_flag("--candidates", arguments->shows_candidates,
                   "with --optimize or --costs: show the times of all candidates of all\n"
                   "nodes, and of conversions");
  command.add_option("--margins", arguments->margins,
                     "SECONDS: with --optimize or --costs, how long to compute how much\n"
                     "faster each candidate must be to be chosen (default 2; 0: not at all)");
  command.add_option("--onnx", arguments->onnx_file,
                     "FILE: write the model as planned, for Netron: backend, time and\n"
                     "layouts are in the metadata of its nodes");
  command.add_option("--html", arguments->page_file,
                     "FILE: write a page for a browser: graph, times, candidates");
  command.add_flag("--json", arguments->is_json, "print JSON, with everything");
  command.set_footer(
      "Inputs that have no file get random numbers. The column layouts shows what a step reads\n"
      "and writes, without weights; a conversion changes the layout only.\n\n"
      "Example:\n"
      "  tessera explain resnet50.onnx --threads 2\n"
      "  tessera explain resnet50.onnx --node conv1 --backends onednn\n"
      "  tessera explain resnet50.onnx --costs costs.json --candidates");
  return [arguments] { return explain(*arguments); };
}

}  // namespace tessera::cli
