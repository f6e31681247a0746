// Model and Executor: thin owners around the stages of src/compile and the runner of src/engine.
#include "tessera/tessera.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/describe.h"
#include "api/describe_plan.h"
#include "api/stage_clock.h"
#include "backend/packs.h"
#include "backend/plugin_ops.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "compile/build_plan.h"
#include "compile/compile.h"
#include "compile/let_go.h"
#include "engine/plan_runner.h"
#include "ops/registry.h"
#include "ops/work.h"

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
  // Shared with the model, so that an executor may outlive it; kernels of the reference need it.
  std::shared_ptr<const ops::Registry> registry;
  PlanRunner runner;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  PlanDescription plan;
  std::vector<StageRecord> stages;
  bool is_recording = false;
  std::vector<StepRecord> steps;

  std::vector<Tensor> inputs_in_order(const std::map<std::string, Tensor>& given) const;
  void record(const PlanEvent& event, std::chrono::steady_clock::time_point run_start);
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

void Executor::State::record(const PlanEvent& event,
                             std::chrono::steady_clock::time_point run_start) {
  const PlanStep& step = plan.steps[event.step];
  steps.push_back({.node = step.name,
                   .op = step.op,
                   .backend = step.backend,
                   .algorithm = step.algorithm,
                   .start = event.start - run_start,
                   .duration = event.duration,
                   .flops = step.flops,
                   .bytes = step.bytes});
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  const std::vector<Tensor> ordered = state_->inputs_in_order(inputs);
  if (!state_->is_recording) return state_->runner.run(ordered);
  state_->steps.clear();
  const auto start = std::chrono::steady_clock::now();
  return state_->runner.run(ordered, [&](const PlanEvent& event) { state_->record(event, start); });
}

const std::vector<ValueDescription>& Executor::inputs() const { return state_->inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->outputs; }
int Executor::threads() const { return state_->runner.threads(); }
const PlanDescription& Executor::plan() const { return state_->plan; }
const std::vector<StageRecord>& Executor::stages() const { return state_->stages; }
void Executor::record_steps(bool is_on) { state_->is_recording = is_on; }
const std::vector<StepRecord>& Executor::steps() const { return state_->steps; }

struct Model::State {
  std::filesystem::path file;
  CompileOptions options;
  int load_threads = 0;
  Backends backends;
  std::shared_ptr<const ops::Registry> registry;
  Log log;
  PackStore packs;
  std::vector<StageRecord> stages;
  mutable std::mutex mutex;  // of the next member, whose weights come and go
  LoadedModel loaded;

  Graph bound_graph(const BindOptions& wanted, ThreadPool& pool) const;
  // Reads the weights again that were let go.
  void restore();
};

Graph Model::State::bound_graph(const BindOptions& wanted, ThreadPool& pool) const {
  const std::lock_guard lock(mutex);
  return bind_graph(loaded, wanted.shapes, wanted.fetch, *registry, pool, log);
}

void Model::State::restore() {
  ThreadPool pool(load_threads);
  LoadedModel again = load_model(file, options, *registry, pool, log);
  const std::lock_guard lock(mutex);
  loaded = std::move(again);
}

namespace {

std::vector<std::shared_ptr<const Plugin>> choose_plugins(BackendSet& set,
                                                          const BindOptions& options) {
  return set.choose(options.backends.empty() ? backends_of_environment() : options.backends);
}

PlanOptions plan_options(const BindOptions& options, const BackendSet& set) {
  if (options.device != "cpu") {
    throw Error(ErrorKind::InvalidArgument, "device '" + options.device + "'",
                "expected 'cpu', the only device so far");
  }
  PlanOptions wanted;
  wanted.precision = options.precision == Precision::BFloat16 ? TESSERA_PRECISION_BFLOAT16
                                                              : TESSERA_PRECISION_FLOAT32;
  for (const Pin& pin : options.pins) {
    wanted.selection.pins.push_back({pin.nodes, set.resolve_alias(pin.backend), pin.algorithm});
  }
  for (const Exclusion& exclusion : options.exclusions) {
    wanted.selection.exclusions.push_back({set.resolve_alias(exclusion.backend), exclusion.op});
  }
  wanted.returns_step_outputs = options.fetches_step_outputs;
  return wanted;
}

std::vector<ValueDescription> describe_results(const PlanResult& result) {
  const Graph& graph = result.built.graph;
  std::vector<ValueDescription> outputs = describe_values(graph, graph.outputs);
  for (const std::vector<ValueId>* ids : {&graph.kept, &result.step_outputs}) {
    for (ValueDescription& value : describe_values(graph, *ids)) {
      outputs.push_back(std::move(value));
    }
  }
  return outputs;
}

// Above this, freed weights are given back to the system at once.
constexpr int64_t kMuchMemoryBytes = int64_t{1} << 23;

int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.is_constant()) bytes = ops::saturating_add(bytes, value.constant.bytes());
  }
  return bytes;
}

// The registry, with the ops of plug-ins that are not of this project.
std::shared_ptr<const ops::Registry> extended_registry(BackendSet& set) {
  ops::Registry registry = ops::make_registry();
  bool is_extended = false;
  for (const std::shared_ptr<const Plugin>& plugin : set.strangers()) {
    for (ops::Op& op : make_ops(plugin->face(), plugin)) {
      // Of two that bring one op, the first counts.
      if (registry.find(op.domain, op.name) != nullptr) continue;
      registry.add(std::move(op));
      is_extended = true;
    }
  }
  return is_extended ? std::make_shared<const ops::Registry>(std::move(registry)) : nullptr;
}

}  // namespace

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Executor Model::bind(const BindOptions& options) const {
  StageClock clock;
  clock.begin("specialise");
  ThreadPool pool(options.threads);
  const PlanOptions wanted = plan_options(options, state_->backends.state_->set);
  const auto plugins = choose_plugins(state_->backends.state_->set, options);
  const auto build = [&] {
    return build_plan(state_->bound_graph(options, pool), *state_->registry, plugins, state_->packs,
                      pool, wanted, [&](const std::string& stage) { clock.begin(stage); });
  };
  PlanResult result;
  try {
    result = build();
  } catch (const LetGo&) {
    clock.begin("restore");
    state_->restore();
    result = build();
  }
  clock.note_bytes(result.pack_bytes);
  {
    const std::lock_guard lock(state_->mutex);
    const int64_t freed = let_go_packed_constants(state_->loaded.graph, result.built);
    if (freed > kMuchMemoryBytes) {
      return_freed_memory();
      drop_resident_pages(state_->loaded.source.mappings);
    }
  }
  std::vector<ValueDescription> inputs = describe_inputs(result.built.graph);
  std::vector<ValueDescription> outputs = describe_results(result);
  PlanDescription plan = describe_plan(result.built, result.pack_bytes, *state_->registry);
  // A runner cannot move, so make_unique cannot hand one over.
  // NOLINTNEXTLINE(modernize-make-unique)
  return Executor(std::unique_ptr<Executor::State>(
      new Executor::State{.registry = state_->registry,
                          .runner = PlanRunner(std::move(result.built), options.threads),
                          .inputs = std::move(inputs),
                          .outputs = std::move(outputs),
                          .plan = std::move(plan),
                          .stages = clock.take()}));
}

ModelDescription Model::describe() const {
  const std::lock_guard lock(state_->mutex);
  ModelDescription description =
      describe_model(state_->loaded, state_->loaded.graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

ModelDescription Model::describe(const std::map<std::string, std::vector<int64_t>>& shapes) const {
  ThreadPool pool;
  const Graph graph = state_->bound_graph({.shapes = shapes}, pool);
  const std::lock_guard lock(state_->mutex);
  ModelDescription description = describe_model(state_->loaded, graph, *state_->registry);
  description.file = state_->file.string();
  return description;
}

const std::vector<StageRecord>& Model::stages() const { return state_->stages; }

Model load(const std::filesystem::path& file, const LoadOptions& options) {
  StageClock clock;
  clock.begin("load");
  auto registry = std::make_shared<const ops::Registry>(ops::make_registry());
  std::unique_ptr<Model::State> state(new Model::State{
      .file = file,
      .options = {.is_strict = options.is_strict, .keeps_all_values = options.keeps_all_values},
      .load_threads = options.threads,
      .backends = options.backends,
      .registry = std::move(registry),
      .log = Log(options.log)});
  try {
    state->restore();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    // Perhaps a plug-in brings the op: only now is it worth opening them.
    const auto extended = extended_registry(options.backends.state_->set);
    if (!extended) throw;
    state->registry = extended;
    state->restore();
  }
  // Weights that passes have replaced are gone by now.
  if (weight_bytes(state->loaded.graph) > kMuchMemoryBytes) return_freed_memory();
  state->stages = clock.take();
  return Model(std::move(state));
}

}  // namespace tessera
