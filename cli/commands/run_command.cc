// `tessera run`: loads a model, binds it, runs it once, and reports.
#include <set>

#include "api/options/argument_text.h"
#include "cli/arguments/bind_arguments.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/plans/plan_summary.h"
#include "cli/plans/trace_file.h"
#include "cli/process/interrupt.h"
#include "cli/reports/run_report.h"
#include "tessera/tensor_file.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct RunArguments {
  ModelArguments model;
  std::vector<std::string> expectations;
  std::string relative_tolerance = "1e-3";
  std::string absolute_tolerance = "1e-5";
  bool is_json = false;
  std::string save_inputs_folder;
  std::string output_folder;
  std::string dump_folder;
  std::string steps_folder;
  std::string trace_file;
};

struct Expectation {
  size_t output = 0;
  Tensor tensor;
};

Tolerance tolerance_of(const RunArguments& arguments) {
  return {.relative = parse_tolerance("--rtol", arguments.relative_tolerance),
          .absolute = parse_tolerance("--atol", arguments.absolute_tolerance)};
}

// Called before the model is loaded, so that the user does not wait for a result that cannot be
// written.
void check_files(const RunArguments& arguments) {
  check_writable_folder("--output", arguments.output_folder);
  check_writable_folder("--save-inputs", arguments.save_inputs_folder);
  check_writable_folder("--dump-values", arguments.dump_folder);
  check_writable_folder("--fetch-steps", arguments.steps_folder);
  check_writable_file("--trace", arguments.trace_file);
}

std::vector<Expectation> read_expectations(const std::vector<std::string>& arguments,
                                           const std::vector<ValueDescription>& outputs) {
  std::vector<Expectation> expectations;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--expect", text);
    const size_t output = find_value_index("--expect", "output", argument.name, outputs);
    expectations.push_back({output, read_tensor(argument.value, outputs[output].type)});
  }
  return expectations;
}

// The values to fetch for --dump-values, without the outputs, which are returned anyway.
std::vector<std::string> values_to_fetch(const ModelDescription& model) {
  std::set<std::string> outputs;
  for (const ValueDescription& output : model.outputs) outputs.insert(output.name);
  std::vector<std::string> names;
  for (const std::string& name : model.fetchable) {
    if (!outputs.contains(name)) names.push_back(name);
  }
  return names;
}

// Every value that a node computes, in the order of the file; `results` has outputs and fetched
// values.
std::vector<NamedTensor> made_values(const ModelDescription& model,
                                     const std::vector<NamedTensor>& results) {
  std::map<std::string, std::string> makers;
  for (const NodeDescription& node : model.nodes) {
    for (const ValueDescription& output : node.outputs) makers[output.name] = node.name;
  }
  std::map<std::string, Tensor> tensors;
  for (const NamedTensor& result : results) tensors[result.name] = result.tensor;
  std::vector<NamedTensor> values;
  for (const std::string& name : model.fetchable) {
    const auto maker = makers.find(name);
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;  // a list
    values.push_back({name, found->second, maker == makers.end() ? "" : maker->second, ""});
  }
  return values;
}

// Every value that a step of `plan` computes, in the plan's order; `results` has all of them.
std::vector<NamedTensor> step_values(const PlanDescription& plan,
                                     const std::vector<NamedTensor>& results) {
  std::map<std::string, Tensor> tensors;
  for (const NamedTensor& result : results) tensors[result.name] = result.tensor;
  std::vector<NamedTensor> values;
  for (const PlanStep& step : plan.steps) {
    // A conversion outputs the value that it reads, in another layout.
    if (is_conversion(step)) continue;
    for (const PlanPort& output : step.outputs) {
      const auto found = tensors.find(output.value);
      if (found == tensors.end()) continue;
      values.push_back({output.value, std::move(found->second), step.name, step.backend});
      tensors.erase(found);
    }
  }
  return values;
}

// Adds a value; a list as one value for each of its tensors, a map as one for its keys and one for
// its values, an empty optional as none.
void add_value(const std::string& name, Tensor tensor, std::vector<NamedTensor>& values) {
  if (tensor.is_empty()) return;
  if (tensor.is_map()) {
    add_value(name + ".keys", tensor.map_keys(), values);
    add_value(name + ".values", tensor.map_values(), values);
    return;
  }
  if (!tensor.is_sequence()) {
    values.push_back({name, std::move(tensor), "", ""});
    return;
  }
  for (size_t index = 0; index < tensor.list().size(); ++index) {
    add_value(name + "[" + std::to_string(index) + "]", tensor.list()[index], values);
  }
}

std::vector<NamedTensor> in_order(const std::vector<ValueDescription>& inputs,
                                  const NamedTensors& tensors) {
  std::vector<NamedTensor> ordered;
  for (const ValueDescription& input : inputs) {
    const auto found = tensors.find(input.name);
    if (found != tensors.end()) add_value(input.name, found->second, ordered);
  }
  return ordered;
}

std::vector<NamedComparison> compare_all(const std::vector<Expectation>& expectations,
                                         const std::vector<NamedTensor>& outputs,
                                         const Tolerance& tolerance) {
  std::vector<NamedComparison> comparisons;
  for (const Expectation& expectation : expectations) {
    const NamedTensor& output = outputs[expectation.output];
    comparisons.push_back({output.name, expectation.tensor.type(),
                           compare(output.tensor, expectation.tensor, tolerance)});
  }
  return comparisons;
}

// The state of one `tessera run`; the stages set the members in this order.
struct Session {
  ModelDescription description;
  NamedTensors inputs;
  std::vector<ValueDescription> bound_inputs;
  std::vector<NamedTensor> results;  // outputs, then fetched values, then those of steps
  Trace trace;
  RunReport report;
};

void note_stages(const LoadedModel& loaded, const BoundModel& bound, Trace& trace) {
  trace.load = loaded.load;
  trace.load_stages = loaded.model.stages();
  trace.bind = bound.bind;
  trace.bind_stages = bound.executor.stages();
  trace.plan = bound.executor.plan();
  trace.steps = bound.executor.steps();
}

Session run_model(const RunArguments& arguments, const Tolerance& tolerance) {
  const ModelRequest request(arguments.model, MissingInputs::AreErrors, BindOptions{},
                             Measuring::IfAsked);
  const bool dumps_values = !arguments.dump_folder.empty();
  const Clock::time_point origin = Clock::now();
  const LoadedModel loaded = request.load(origin, /*keeps_all_values=*/dumps_values);
  const std::vector<Expectation> expectations =
      read_expectations(arguments.expectations, loaded.description.outputs);
  const std::vector<std::string> fetch =
      dumps_values ? values_to_fetch(loaded.description) : std::vector<std::string>();
  BoundModel bound = request.bind(loaded, origin, fetch, !arguments.steps_folder.empty());
  Executor& executor = bound.executor;
  executor.record_steps(!arguments.trace_file.empty());
  request.progress().show("running");
  Session session;
  Trace& trace = session.trace;
  std::vector<Tensor> tensors = dense_of(timed(origin, trace.run, [&] {
    const Interrupt interrupt(&executor);
    return executor.run_any(bound.feeds);
  }));
  note_stages(loaded, bound, trace);
  session.description = loaded.description;
  session.inputs = bound.inputs;
  session.bound_inputs = executor.inputs();
  RunReport& report = session.report;
  report.model = loaded.description.file;
  for (size_t index = 0; index < tensors.size(); ++index) {
    if (index == loaded.description.outputs.size()) report.outputs = session.results;
    add_value(executor.outputs()[index].name, std::move(tensors[index]), session.results);
  }
  if (tensors.size() == loaded.description.outputs.size()) report.outputs = session.results;
  report.times = {trace.load, trace.bind, trace.run};
  report.threads = executor.threads();
  // Without measurements nothing was saved, so the report need not be read.
  if (trace.plan.tuning.measured > 0) report.new_cache = executor.cache_report().saved.string();
  report.comparisons = compare_all(expectations, report.outputs, tolerance);
  return session;
}

void write_files(const RunArguments& arguments, Session& session) {
  StagedFiles files;
  if (!arguments.save_inputs_folder.empty()) {
    write_tensors(arguments.save_inputs_folder, "input",
                  in_order(session.bound_inputs, session.inputs), false, files);
  }
  if (!arguments.output_folder.empty()) {
    write_tensors(arguments.output_folder, "output", session.report.outputs, false, files);
    session.report.has_output_files = true;
  }
  if (!arguments.dump_folder.empty()) {
    write_tensors(arguments.dump_folder, "value", made_values(session.description, session.results),
                  true, files);
  }
  if (!arguments.steps_folder.empty()) {
    write_tensors(arguments.steps_folder, "value", step_values(session.trace.plan, session.results),
                  true, files);
  }
  if (!arguments.trace_file.empty()) {
    files.write_text(arguments.trace_file, trace_text(session.trace));
  }
  files.commit();
}

CommandResult run(const RunArguments& arguments) {
  const Tolerance tolerance = tolerance_of(arguments);
  check_files(arguments);
  Session session = run_model(arguments, tolerance);
  write_files(arguments, session);
  return {session.report.is_match() ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(report_json(session.report))
                            : report_text(session.report, stdout_style())};
}

void add_output_options(CommandOptions command, RunArguments& arguments) {
  command.add_option("--output", arguments.output_folder,
                     "DIR: write output_<index>.npy and outputs.json");
  command.add_option("--save-inputs", arguments.save_inputs_folder,
                     "DIR: write input_<index>.npy and inputs.json");
  command.add_option("--dump-values", arguments.dump_folder,
                     "DIR: write the output of every node, and values.json; turns off the\n"
                     "fusion of nodes");
  command.add_option("--fetch-steps", arguments.steps_folder,
                     "DIR: write the output of every step, and values.json; adds nothing\n"
                     "but conversions to the plan");
  command.add_option("--trace", arguments.trace_file,
                     "FILE: write a Chrome trace, which ui.perfetto.dev opens");
  command.add_flag("--json", arguments.is_json, "print JSON");
  command.add_repeatable("--expect", arguments.expectations,
                         "NAME=FILE: compare an output with a file; exit code 1 if it differs");
  command.add_option("--rtol", arguments.relative_tolerance,
                     "NUMBER: relative tolerance of --expect (default 1e-3)");
  command.add_option("--atol", arguments.absolute_tolerance,
                     "NUMBER: absolute tolerance of --expect (default 1e-5)");
}

}  // namespace

Command make_run_command(CommandOptions command) {
  const auto arguments = std::make_shared<RunArguments>();
  add_model_options(command, kRunCommand, arguments->model, MissingInputs::AreErrors);
  add_output_options(command, *arguments);
  command.set_footer(
      "Example:\n"
      "  tessera run squeezenet.onnx --input data_0=image.npy --expect '#0=softmax.npy'");
  return [arguments] { return run(*arguments); };
}

}  // namespace tessera::cli
