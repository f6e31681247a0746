// Model and Executor: thin owners around the stages of src/compile and the runner of src/engine.
#include "tessera/tessera.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include "api/backends_state.h"
#include "api/describe.h"
#include "api/describe_plan.h"
#include "api/exchanged_layouts.h"
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
#include "export/onnx/export.h"
#include "infer/mark_sparse.h"
#include "ops/registry.h"
#include "ops/work.h"
#include "tune/capture.h"
#include "tune/cost_table.h"
#include "tune/groups.h"
#include "tune/worker_bench.h"

namespace tessera {
namespace {

std::string list_names(const std::vector<ValueDescription>& values) {
  std::string names;
  for (const ValueDescription& value : values) {
    names += (names.empty() ? "'" : ", '") + value.name + "'";
  }
  return names.empty() ? "none" : names;
}

}  // namespace

struct Executor::State {
  // Shared with the model, so that an executor may outlive it; kernels of the reference need it.
  std::shared_ptr<const ops::Registry> registry;
  PlanRunner runner;
  std::vector<ValueDescription> inputs;
  std::vector<ValueDescription> outputs;
  std::vector<std::optional<SparseForm>> input_forms;
  std::vector<std::optional<SparseForm>> output_forms;  // of the model's outputs
  PlanDescription plan;
  tuning::CostTable costs;
  std::vector<StageRecord> stages;
  bool is_recording = false;
  std::vector<StepRecord> steps;
  std::once_flag are_costs_written;
  std::string costs_text;  // of `costs`, once somebody asked

  template <class AnyOrTensor>
  std::vector<Tensor> inputs_in_order(const std::map<std::string, AnyOrTensor>& given) const;
  std::vector<Tensor> run(const std::vector<Tensor>& ordered);
  void record(const PlanEvent& event, std::chrono::steady_clock::time_point run_start);
};

template <class AnyOrTensor>
std::vector<Tensor> Executor::State::inputs_in_order(
    const std::map<std::string, AnyOrTensor>& given) const {
  std::vector<Tensor> ordered;
  size_t known = 0;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const ValueDescription& input = inputs[index];
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
    ordered.push_back(input.is_read ? feed({input, input_forms[index]}, found->second) : Tensor());
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

std::vector<Tensor> Executor::State::run(const std::vector<Tensor>& ordered) {
  if (!is_recording) return runner.run(ordered);
  steps.clear();
  const auto start = std::chrono::steady_clock::now();
  return runner.run(ordered, [&](const PlanEvent& event) { record(event, start); });
}

std::vector<Tensor> Executor::run(const std::map<std::string, Tensor>& inputs) {
  for (size_t index = 0; index < state_->output_forms.size(); ++index) {
    if (!state_->output_forms[index]) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + state_->outputs[index].name + "'",
                "run() gives dense outputs, but this one was bound in " +
                    text(*state_->output_forms[index]) + ": call run_any()");
  }
  return state_->run(state_->inputs_in_order(inputs));
}

std::vector<AnyTensor> Executor::run_any(const std::map<std::string, AnyTensor>& inputs) {
  std::vector<Tensor> results = state_->run(state_->inputs_in_order(inputs));
  std::vector<AnyTensor> given;
  for (size_t index = 0; index < results.size(); ++index) {
    const std::optional<SparseForm> form =
        index < state_->output_forms.size() ? state_->output_forms[index] : std::nullopt;
    given.push_back(give({state_->outputs[index], form}, std::move(results[index])));
  }
  return given;
}

const std::vector<ValueDescription>& Executor::inputs() const { return state_->inputs; }
const std::vector<ValueDescription>& Executor::outputs() const { return state_->outputs; }
int Executor::threads() const { return state_->runner.threads(); }
const PlanDescription& Executor::plan() const { return state_->plan; }
const std::string& Executor::costs() const {
  std::call_once(state_->are_costs_written, [&] {
    const tuning::CostTable& costs = state_->costs;
    const bool is_known = state_->plan.placement.has_value();
    if (is_known) state_->costs_text = tuning::write_cost_table(costs);
  });
  return state_->costs_text;
}
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
  mutable std::mutex mutex;  // of the next members
  LoadedModel loaded;        // its weights come and go

  Graph bound_graph(const BindOptions& wanted, ThreadPool& pool) const;
  // Reads the weights again that were let go.
  void restore();
};

Graph Model::State::bound_graph(const BindOptions& wanted, ThreadPool& pool) const {
  const std::lock_guard lock(mutex);
  Graph graph = bind_graph(loaded, wanted.shapes, wanted.fetch, *registry, pool, log);
  mark_sparse(graph, parse_layouts(graph, wanted.layouts), *registry);
  return graph;
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
  wanted.keeps_sparse_storage = options.strict_storage;
  if (options.memory_budget_bytes < 0) {
    throw Error(
        ErrorKind::InvalidArgument, "memory_budget_bytes",
        "expected 0 (no limit) or more, found " + std::to_string(options.memory_budget_bytes));
  }
  wanted.memory_budget_bytes = options.memory_budget_bytes;
  return wanted;
}

// What `file` holds; nothing for "".
tuning::CostTable known_costs(const std::filesystem::path& file) {
  if (file.empty()) return {};
  const std::string where = "costs '" + file.string() + "'";
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.is_open() || stream.bad()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a file that `tessera tune --output` wrote, found none that can be read");
  }
  tuning::CostTable table = tuning::read_cost_table(text, where);
  if (!table.machine.empty() && table.machine != tuning::this_machine()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected times of this machine (" + tuning::this_machine() + "), found those of " +
                    table.machine + "; tune again here");
  }
  return table;
}

PricingOptions pricing_options(const BindOptions& options, tuning::CostTable& costs) {
  if (!(options.candidate_timeout_seconds > 0)) {
    throw Error(ErrorKind::InvalidArgument, "candidate_timeout_seconds",
                "expected more than 0, found " + std::to_string(options.candidate_timeout_seconds));
  }
  PricingOptions pricing{.costs = &costs,
                         .measures = options.optimize,
                         .measures_all = options.tune_all,
                         .margin_search_seconds = options.margin_search_seconds};
  if (!(options.tune_budget_seconds >= 0)) {
    throw Error(
        ErrorKind::InvalidArgument, "tune_budget_seconds",
        "expected 0 (no limit) or more, found " + std::to_string(options.tune_budget_seconds));
  }
  pricing.tune.budget_seconds = options.tune_budget_seconds;
  pricing.tune.candidate_timeout_seconds = options.candidate_timeout_seconds;
  if (options.on_progress) {
    pricing.tune.on_progress = [tell = options.on_progress](const tuning::TuneProgress& progress) {
      return tell({progress.what, progress.done, progress.total, progress.best_seconds,
                   progress.seconds_left});
    };
  }
  return pricing;
}

// Those that the caller gave, in the graph's order, the others drawn; none where he gave none.
std::vector<Tensor> tuning_inputs(const Graph& graph, const BindOptions& options) {
  if (options.tuning_inputs.empty()) return {};
  std::vector<Tensor> inputs = tuning::draw_inputs(graph, 1);
  const std::vector<ValueDescription> expected = describe_inputs(graph);
  for (size_t index = 0; index < inputs.size(); ++index) {
    const auto given = options.tuning_inputs.find(expected[index].name);
    if (given == options.tuning_inputs.end()) continue;
    const std::optional<SparseForm> dense;
    inputs[index] =
        expected[index].is_read ? feed({expected[index], dense}, given->second) : given->second;
  }
  return inputs;
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
    if (value.constant.has_elements()) bytes = ops::saturating_add(bytes, value.constant.bytes());
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
  PlanOptions wanted = plan_options(options, state_->backends.state_->set);
  wanted.log = &state_->log;
  tuning::CostTable costs;
  if (options.optimize || !options.cost_table.empty()) {
    costs = known_costs(options.cost_table);
    wanted.pricing = pricing_options(options, costs);
    wanted.pricing.shared = &state_->backends.state_->costs;
  }
  const auto plugins = choose_plugins(state_->backends.state_->set, options);
  wanted.pricing.measures_short_here = state_->backends.state_->set.strangers().empty();
  if (!options.in_process) {
    wanted.pricing.tune.start_bench = [&] {
      return tuning::start_worker(plugins,
                                  {.threads = pool.threads(),
                                   .candidate_timeout_seconds = options.candidate_timeout_seconds},
                                  state_->log);
    };
  }
  const auto build = [&] {
    Graph graph = state_->bound_graph(options, pool);
    wanted.pricing.tune.inputs = tuning_inputs(graph, options);
    return build_plan(std::move(graph), *state_->registry, plugins, state_->packs, pool, wanted,
                      [&](const std::string& stage) { clock.begin(stage); });
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
  if (options.optimize) state_->backends.state_->costs.add(costs);
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
  std::vector<std::optional<SparseForm>> input_forms =
      exchanged_forms(result.built.graph, result.built.graph.inputs);
  std::vector<std::optional<SparseForm>> output_forms =
      exchanged_forms(result.built.graph, result.built.graph.outputs);
  PlanDescription plan =
      describe_plan(result.built, result.pack_bytes, pool.threads(), *state_->registry);
  for (size_t index = 0; index < result.step_seconds.size(); ++index) {
    plan.steps[index].predicted_seconds = result.step_seconds[index];
  }
  plan.candidates = std::move(result.candidates);
  plan.conversions = std::move(result.conversions);
  plan.placement = std::move(result.placement);
  plan.tuning = std::move(result.tuning);
  // A runner cannot move, so make_unique cannot hand one over.
  // NOLINTNEXTLINE(modernize-make-unique)
  return Executor(std::unique_ptr<Executor::State>(
      new Executor::State{.registry = state_->registry,
                          .runner = PlanRunner(std::move(result.built), options.threads),
                          .inputs = std::move(inputs),
                          .outputs = std::move(outputs),
                          .input_forms = std::move(input_forms),
                          .output_forms = std::move(output_forms),
                          .plan = std::move(plan),
                          .costs = std::move(costs),
                          .stages = clock.take()}));
}

ModelVerification Model::verify(const BindOptions& options) const {
  ThreadPool pool(options.threads);
  const PlanOptions wanted = plan_options(options, state_->backends.state_->set);
  tuning::CostTable none;
  PricingOptions pricing = pricing_options(options, none);
  const auto plugins = choose_plugins(state_->backends.state_->set, options);
  const auto check = [&] {
    const Graph graph = state_->bound_graph(options, pool);
    pricing.tune.inputs = tuning_inputs(graph, options);
    return check_offers(graph, *state_->registry, plugins, pool, wanted.precision, wanted.selection,
                        pricing.tune);
  };
  CheckedOffers checked;
  try {
    checked = check();
  } catch (const LetGo&) {
    state_->restore();
    checked = check();
  }
  return {std::move(checked.candidates), std::move(checked.tuning)};
}

std::string Model::to_onnx(
    const BindOptions& options,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  ThreadPool pool(options.threads);
  const auto write = [&] {
    Graph graph = state_->bound_graph(options, pool);
    check_has_elements(graph);
    for (Node& node : graph.nodes) {
      const auto found = notes.find(node.name);
      if (found == notes.end()) continue;
      for (const auto& [key, value] : found->second) node.metadata[key] = value;
    }
    return export_onnx(graph, *state_->registry);
  };
  try {
    return write();
  } catch (const LetGo&) {
    state_->restore();
    return write();
  }
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
