// Model and Executor: thin owners around the stages of src/compile and the runner of src/engine.
#include "tessera/tessera.h"

#include <algorithm>
#include <utility>

#include "api/describe.h"
#include "base/log.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "engine/interpreter.h"
#include "ops/registry.h"

namespace tessera {
namespace {

std::string list_names(const std::vector<ValueDescription>& values) {
  std::string names;
  for (const ValueDescription& value : values) {
    names += (names.empty() ? "'" : ", '") + value.name + "'";
  }
  return names.empty() ? "none" : names;
}

void check_input(const ValueDescription& expected, const Tensor& tensor) {
  const std::string found = std::string(name(tensor.type())) + " " + dims_text(tensor.dims());
  if (found == expected.text) return;
  throw Error(ErrorKind::InvalidArgument, "input '" + expected.name + "'",
              "expected " + expected.text + ", found " + found);
}

}  // namespace

struct Executor::State {
  // Shared with the model, so that an executor may outlive it.
  std::shared_ptr<const ops::Registry> registry;
  Interpreter interpreter;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  bool is_recording = false;
  std::vector<StepRecord> steps;

  std::vector<Tensor> inputs_in_order(const std::map<std::string, Tensor>& given) const;
  void record(const StepEvent& event, std::chrono::steady_clock::time_point run_start);
};

std::vector<Tensor> Executor::State::inputs_in_order(
    const std::map<std::string, Tensor>& given) const {
  std::vector<Tensor> ordered;
  size_t known = 0;
  for (const ValueDescription& input : inputs) {
    const auto found = given.find(input.name);
    if (found == given.end()) {
      if (input.is_read) {
        throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
                    "expected a tensor (" + input.text + "), found none given");
      }
      ordered.emplace_back();
      continue;
    }
    ++known;
    if (input.is_read) check_input(input, found->second);
    ordered.push_back(found->second);
  }
  if (known == given.size()) return ordered;
  for (const auto& [input_name, tensor] : given) {
    const bool is_known = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const auto& input) { return input.name == input_name; });
    if (!is_known) {
      throw Error(ErrorKind::InvalidArgument, "input '" + input_name + "'",
                  "the model has no such input; it has " + list_names(inputs));
    }
  }
  return ordered;
}

void Executor::State::record(const StepEvent& event,
                             std::chrono::steady_clock::time_point run_start) {
  const Graph& graph = interpreter.graph();
  steps.push_back({.node = event.node.name,
                   .op = event.node.op,
                   .start = event.start - run_start,
                   .duration = event.duration,
                   .flops = node_flops(graph, event.node, *registry).value_or(0),
                   .bytes = node_bytes(graph, event.node, *registry).value_or(0)});
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  const std::vector<Tensor> ordered = state_->inputs_in_order(inputs);
  if (!state_->is_recording) return state_->interpreter.run(ordered);
  state_->steps.clear();
  const auto start = std::chrono::steady_clock::now();
  return state_->interpreter.run(ordered,
                                 [&](const StepEvent& event) { state_->record(event, start); });
}

const std::vector<ValueDescription>& Executor::inputs() const { return state_->inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->outputs; }
int Executor::threads() const { return state_->interpreter.threads(); }
void Executor::record_steps(bool is_on) { state_->is_recording = is_on; }
const std::vector<StepRecord>& Executor::steps() const { return state_->steps; }

struct Model::State {
  std::filesystem::path file;
  std::shared_ptr<const ops::Registry> registry;
  Log log;
  LoadedModel loaded;
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Executor Model::bind(const BindOptions& options) const {
  ThreadPool pool(options.threads);
  Graph graph = bind_graph(state_->loaded, options.shapes, options.fetch, *state_->registry, pool,
                           state_->log);
  std::vector<ValueDescription> inputs = describe_inputs(graph);
  std::vector<ValueDescription> outputs = describe_values(graph, graph.outputs);
  for (ValueDescription& value : describe_values(graph, graph.kept)) {
    outputs.push_back(std::move(value));
  }
  // An Interpreter cannot move, so make_unique cannot hand one over.
  // NOLINTNEXTLINE(modernize-make-unique)
  return Executor(std::unique_ptr<Executor::State>(new Executor::State{
      .registry = state_->registry,
      .interpreter = Interpreter(std::move(graph), *state_->registry, options.threads),
      .inputs = std::move(inputs),
      .outputs = std::move(outputs)}));
}

ModelDescription Model::describe() const {
  ModelDescription description =
      describe_model(state_->loaded, state_->loaded.graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

ModelDescription Model::describe(const std::map<std::string, std::vector<int64_t>>& shapes) const {
  ThreadPool pool;
  const Graph graph = bind_graph(state_->loaded, shapes, {}, *state_->registry, pool, state_->log);
  ModelDescription description = describe_model(state_->loaded, graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

Model load(const std::filesystem::path& file, const LoadOptions& options) {
  auto registry = std::make_shared<const ops::Registry>(ops::make_registry());
  std::unique_ptr<Model::State> state(
      new Model::State{.file = file, .registry = std::move(registry), .log = Log(options.log)});
  ThreadPool pool;
  state->loaded = load_model(
      file, {.is_strict = options.is_strict, .keeps_all_values = options.keeps_all_values},
      *state->registry, pool, state->log);
  return Model(std::move(state));
}

}  // namespace tessera
