// `tessera tune`: measures the candidates for a model, and writes their costs to a file; or prints
// the expected time and gain of measuring.
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"
#include "cli/output/staged_files.h"
#include "cli/output/text_table.h"
#include "cli/plans/costs_report.h"
#include "cli/plans/placement_report.h"
#include "cli/plans/plan_json.h"
#include "cli/plans/plan_summary.h"
#include "measure/quote.h"

namespace tessera::cli {
namespace {

struct TuneArguments {
  ModelArguments model;
  std::string output;
  bool only_quotes = false;
  bool shows_table = false;
  bool is_json = false;
};

std::string tune_text(const TuneArguments& arguments, const Executor& executor) {
  const PlanDescription& plan = executor.plan();
  const TextStyle style = stdout_style();
  std::string text = tuning_text(plan.tuning, style) + refused_text(plan.candidates, style);
  if (arguments.shows_table) {
    text += candidates_text(plan.candidates, /*shows_all=*/false, style) +
            conversions_text(plan.conversions, style) + "\n";
  }
  text += wrapped(steps_text(count_steps(plan)) + "; " + count_text(executor.threads(), "thread"),
                  style);
  text += placement_text(plan.placement, std::nullopt, style);
  if (!arguments.output.empty()) {
    text += wrapped("wrote " + arguments.output + "; use it with --costs", style);
  }
  return text;
}

Json tune_json(const TuneArguments& arguments, const Executor& executor) {
  const PlanDescription& plan = executor.plan();
  return {{"model", arguments.model.model},
          {"thread_count", executor.threads()},
          {"file", arguments.output},
          {"tuning", to_json(plan.tuning)},
          {"placement", placement_json(plan.placement, std::nullopt)},
          {"candidates", to_json(plan.candidates)},
          {"conversions", to_json(plan.conversions)}};
}

// Binds nothing, and writes no file.
CommandResult quote(const TuneArguments& arguments, BindOptions preset) {
  for (const auto& [option, is_given] : {std::pair("--output", !arguments.output.empty()),
                                         std::pair("--table", arguments.shows_table)}) {
    if (!is_given) continue;
    throw Error(ErrorKind::InvalidArgument, "command line",
                std::string("--dry-run measures nothing, so there is nothing for ") + option +
                    "; leave out one of the two");
  }
  // load() would keep an index of the model.
  preset.optimize = Optimize::Off;
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, preset);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  const TuningQuote quote = request.quote_tuning(loaded);
  return {kFine, arguments.is_json ? json_text({{"model", loaded.description.file},
                                                {"quote", fields_json(quote)}})
                                   : wrapped(quote_text(quote), stdout_style())};
}

CommandResult tune(TuneArguments arguments) {
  BindOptions preset = without_swap();
  preset.optimize = Optimize::Now;
  preset.cache.retune = true;
  if (arguments.only_quotes) return quote(arguments, preset);
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, preset);
  // Measuring takes long, so the program first checks whether it can write the result.
  check_writable_file("--output", arguments.output);
  const Clock::time_point origin = Clock::now();
  const LoadedModel loaded = request.load(origin, /*keeps_all_values=*/false);
  arguments.model.model = loaded.description.file;
  const BoundModel bound = request.bind(loaded, origin, {}, false, /*exits_on_signal=*/false);
  StagedFiles written;
  if (!arguments.output.empty()) {
    written.write_text(arguments.output, bound.executor.costs());
    written.commit();
  }
  return {kFine, arguments.is_json ? json_text(tune_json(arguments, bound.executor))
                                   : tune_text(arguments, bound.executor)};
}

}  // namespace

Command make_tune_command(CommandOptions command) {
  const auto arguments = std::make_shared<TuneArguments>();
  add_model_options(command, kTuneCommand, arguments->model, MissingInputs::AreRandom);
  command.add_option("--output", arguments->output,
                     "FILE: write the measured times as JSON, for --costs");
  add_bind_option(command, "cost_table", arguments->model.bind,
                  "an earlier --output, whose times are not measured again");
  add_bind_option(command, "tune_all", arguments->model.bind);
  command.add_flag("--dry-run", arguments->only_quotes,
                   "measure and write nothing; print the expected time and gain of tuning");
  command.add_flag("--table", arguments->shows_table, "print every candidate with its time");
  command.add_flag("--json", arguments->is_json, "print JSON, with everything");
  command.set_footer(
      "Kernels that could be in the fastest plan are compared with the reference on the values "
      "that\n"
      "the model computes, and timed; then whole plans are run in turns. A kernel that is wrong,\n"
      "fails or takes too long is refused with the reason. Ctrl-C, SIGTERM and SIGHUP stop early "
      "and\n"
      "keep what was measured so far.\n\n"
      "Example:\n"
      "  tessera tune resnet50.onnx --threads 2 --output costs.json\n"
      "  tessera bench resnet50.onnx --threads 2 --costs costs.json");
  return [arguments] { return tune(*arguments); };
}

}  // namespace tessera::cli
