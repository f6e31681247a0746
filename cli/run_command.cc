// `tessera run`: loads a model, binds it, runs it once, and reports.
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include "cli/command.h"
#include "cli/named_argument.h"
#include "cli/run_inputs.h"
#include "cli/run_report.h"
#include "tessera/tensor_file.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

using Clock = std::chrono::steady_clock;

// More than any machine has; each costs memory of its own.
constexpr uint64_t kMaxThreads = 4096;

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs;
  std::optional<std::string> seed;  // as given, because "-1" and "0x1" are no seeds
  std::vector<std::string> shapes;
  std::vector<std::string> expectations;
  Tolerance tolerance;
  std::string threads = "0";
  bool is_strict = false;
  bool is_json = false;
  std::string save_inputs_folder;
  std::string output_folder;
  std::string dump_folder;
  std::string trace_file;
};

struct Expectation {
  size_t output = 0;
  Tensor tensor;
};

void check_tolerance(const RunOptions& options) {
  for (const double tolerance : {options.tolerance.relative, options.tolerance.absolute}) {
    if (std::isfinite(tolerance) && tolerance >= 0) continue;
    throw Error(ErrorKind::InvalidArgument, "--rtol and --atol",
                "expected finite numbers of at least 0, found " + number_text(tolerance, 6));
  }
}

int parse_threads(const std::string& text) {
  const uint64_t threads = parse_whole_number("--threads", text);
  if (threads <= kMaxThreads) return static_cast<int>(threads);
  throw Error(ErrorKind::InvalidArgument, "--threads",
              "expected at most " + std::to_string(kMaxThreads) + ", found " + text);
}

// Calls `stage` and gives how long it took, counted from `origin`.
template <class Stage>
auto timed(Clock::time_point origin, Span& span, const Stage& stage) {
  const Clock::time_point start = Clock::now();
  auto result = stage();
  span = {start - origin, Clock::now() - start};
  return result;
}

std::vector<Expectation> read_expectations(const std::vector<std::string>& arguments,
                                           const std::vector<ValueDescription>& outputs) {
  std::vector<Expectation> expectations;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--expect", text);
    const size_t output = find_value_index("--expect", "output", argument.name, outputs);
    expectations.push_back({output, read_tensor(argument.value)});
  }
  return expectations;
}

// The values to fetch for --dump-values: outputs come anyway.
std::vector<std::string> values_to_fetch(const ModelDescription& model) {
  std::set<std::string> outputs;
  for (const ValueDescription& output : model.outputs) outputs.insert(output.name);
  std::vector<std::string> names;
  for (const std::string& name : model.fetchable) {
    if (!outputs.contains(name)) names.push_back(name);
  }
  return names;
}

// Every value that a node makes, in the order of the file; `results` has outputs and what was
// fetched.
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
    values.push_back({name, tensors.at(name), maker == makers.end() ? "" : maker->second});
  }
  return values;
}

std::vector<NamedTensor> in_order(const std::vector<ValueDescription>& inputs,
                                  const NamedTensors& tensors) {
  std::vector<NamedTensor> ordered;
  for (const ValueDescription& input : inputs) {
    const auto found = tensors.find(input.name);
    if (found != tensors.end()) ordered.push_back({input.name, found->second, ""});
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

// The state of one `tessera run`, each member made by the stage before the next.
struct Session {
  ModelDescription description;
  NamedTensors inputs;
  std::vector<ValueDescription> bound_inputs;
  std::vector<NamedTensor> results;  // outputs, then fetched values
  std::vector<StepRecord> steps;
  RunReport report;
};

Session run_model(const RunOptions& options) {
  Session session;
  RunTimes& times = session.report.times;
  std::optional<uint64_t> seed;
  if (options.seed) seed = parse_whole_number("--random", *options.seed);
  const int threads = parse_threads(options.threads);
  const Clock::time_point origin = Clock::now();
  const Model model = timed(origin, times.load, [&] {
    return load(options.model,
                {.is_strict = options.is_strict, .keeps_all_values = !options.dump_folder.empty()});
  });
  session.description = model.describe();
  const ModelDescription& description = session.description;
  const NamedShapes shapes = parse_shapes(options.shapes, description.inputs);
  session.inputs = read_inputs(options.inputs, description.inputs, shapes);
  if (!seed) check_all_given(description.inputs, session.inputs);
  const std::vector<Expectation> expectations =
      read_expectations(options.expectations, description.outputs);

  BindOptions bind_options{.shapes = shapes_to_bind(shapes, session.inputs), .threads = threads};
  if (!options.dump_folder.empty()) bind_options.fetch = values_to_fetch(description);
  Executor executor = timed(origin, times.bind, [&] { return model.bind(bind_options); });
  session.bound_inputs = executor.inputs();
  if (seed) add_random(executor.inputs(), *seed, session.inputs);

  executor.record_steps(!options.trace_file.empty());
  std::vector<Tensor> tensors =
      timed(origin, times.run, [&] { return executor.run(session.inputs); });
  session.steps = executor.steps();
  for (size_t index = 0; index < tensors.size(); ++index) {
    session.results.push_back({executor.outputs()[index].name, std::move(tensors[index]), ""});
  }
  session.report.model = options.model;
  session.report.outputs.assign(
      session.results.begin(),
      session.results.begin() + static_cast<std::ptrdiff_t>(description.outputs.size()));
  session.report.threads = executor.threads();
  session.report.comparisons = compare_all(expectations, session.report.outputs, options.tolerance);
  return session;
}

void write_files(const RunOptions& options, Session& session) {
  StagedFiles files;
  if (!options.save_inputs_folder.empty()) {
    write_tensors(options.save_inputs_folder, "input",
                  in_order(session.bound_inputs, session.inputs), false, files);
  }
  if (!options.output_folder.empty()) {
    write_tensors(options.output_folder, "output", session.report.outputs, false, files);
    session.report.has_output_files = true;
  }
  if (!options.dump_folder.empty()) {
    write_tensors(options.dump_folder, "value", made_values(session.description, session.results),
                  true, files);
  }
  if (!options.trace_file.empty()) {
    files.write_text(options.trace_file, trace_text(session.report.times, session.steps));
  }
  files.commit();
}

CommandResult run(const RunOptions& options) {
  check_tolerance(options);
  Session session = run_model(options);
  write_files(options, session);
  return {session.report.is_match() ? kFine : kAnswerIsNo,
          options.is_json ? json_text(report_json(session.report)) : report_text(session.report)};
}

void add_input_options(CLI::App& command, RunOptions& options) {
  command.add_option("MODEL", options.model, "an ONNX file")->required();
  add_repeatable(command, "--input", options.inputs,
                 "NAME=FILE.npy or NAME=FILE.pb; NAME may be #<index>");
  command.add_option("--random", options.seed,
                     "SEED: random numbers for the inputs that have no file");
  add_repeatable(command, "--shape", options.shapes,
                 "NAME=1x3x224x224 or NAME=scalar: the shape of an input");
  command.add_option("--threads", options.threads, "threads to use (default 0: all cores)");
  command.add_flag("--strict", options.is_strict,
                   "a declared inner shape that is wrong is an error");
}

void add_output_options(CLI::App& command, RunOptions& options) {
  command.add_option("--output", options.output_folder,
                     "DIR: write output_<index>.npy and outputs.json");
  command.add_option("--save-inputs", options.save_inputs_folder,
                     "DIR: write input_<index>.npy and inputs.json");
  command.add_option("--dump-values", options.dump_folder,
                     "DIR: write every value that a node makes, and values.json");
  command.add_option("--trace", options.trace_file,
                     "FILE: write a Chrome trace, which ui.perfetto.dev opens");
  command.add_flag("--json", options.is_json, "print JSON");
  add_repeatable(command, "--expect", options.expectations,
                 "NAME=FILE: compare an output; exit code 1 where it differs");
  command.add_option("--rtol", options.tolerance.relative,
                     "relative tolerance of --expect (default 1e-3)");
  command.add_option("--atol", options.tolerance.absolute,
                     "absolute tolerance of --expect (default 1e-5)");
}

}  // namespace

Command make_run_command(CLI::App& command) {
  const auto options = std::make_shared<RunOptions>();
  add_input_options(command, *options);
  add_output_options(command, *options);
  command.footer(
      "Example:\n"
      "  tessera run squeezenet.onnx --input data_0=picture.npy --expect '#0=softmax.npy'");
  return [options] { return run(*options); };
}

}  // namespace tessera::cli
