// Plans for the nested graphs of a node: each is a model of its own, bound to the sizes of its
// inputs, with everything that this means: its choice is measured and cached, and inputs of other
// sizes get plans of their own or that of a family.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "base/threads/parallel.h"
#include "choose/select_offers.h"
#include "infer/specialise.h"

namespace tessera {
namespace {

// The options for a nested graph: what concerns inputs, outputs and memory of the caller is that of
// the outer plan alone.
BindOptions nested_options(const BindOptions& outer, const Graph& body) {
  BindOptions options{.threads = outer.threads,
                      .backends = outer.backends,
                      .optimize = outer.optimize,
                      .run = {.devices = {"cpu"},
                              .precision = outer.run.precision,
                              .nan = outer.run.nan,
                              .accuracy = outer.run.accuracy,
                              .fuse = outer.run.fuse,
                              .keeps_denormals = outer.run.keeps_denormals,
                              .families = outer.run.families},
                      .tune = outer.tune,
                      .cache = outer.cache,
                      .limits = outer.limits,
                      .on_progress = outer.on_progress};
  options.run.exclusions = outer.run.exclusions;
  std::ranges::copy_if(outer.run.pins, std::back_inserter(options.run.pins), [&](const Pin& pin) {
    return concerns(NodePin{pin.nodes, pin.backend, pin.algorithm}, body);
  });
  options.tune.cost_table.clear();
  options.tune.tuning_inputs.clear();
  options.limits.memory_budget_bytes = 0;
  return options;
}

}  // namespace

// One nested graph.
class Model::State::NestedPlan {
 public:
  NestedPlan(Model::State& outer, const BindOptions& options, Graph graph, const std::string& name,
             const std::vector<LoadedCache>& more)
      : model_(std::make_shared<Model::State>(
            ModelSource{.file = name},
            LoadOptions{
                .log = [&outer](const std::string& message) { outer.log.warn(message); },
                .information_log =
                    [&outer](const std::string& message) { outer.information_log.warn(message); },
                .backends = outer.backends,
                .keeps_index = false},
            Keeping::None)),
        options_(nested_options(options, graph)) {
    for (const ValueId id : graph.inputs) {
      const bool has_shape =
          graph[id].type.is_tensor() || graph[id].type.kind == Type::Kind::Unknown;
      inputs_.push_back(has_shape ? graph[id].name : "");
    }
    const bool is_open = needs_shapes(graph, {});
    ThreadPool pool(options.threads);
    model_->loaded.take_nested(std::move(graph), outer.loaded.registry(), pool);
    model_->stored_with = outer.stored_with;
    model_->stored.set_loaded_caches(
        outer.stored_with->nested_caches(model_->loaded.ingredients(), more));
    if (!is_open) executor_ = model_->bind_state(options_, {});
  }

  void set_outer(ExecutionContext* context) {
    outer_ = context;
    if (executor_ != nullptr) executor_->context.set_outer(context);
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    if (executor_ == nullptr) {
      bind_to(inputs);
      executor_->context.set_outer(outer_);
    }
    return executor_->run_in_order(inputs, watcher());
  }

  const PlanWatcher& watcher() const {
    static const PlanWatcher kNone;
    return outer_ != nullptr && outer_->is_recording() ? watcher_ : kNone;
  }

  // Appends the recorded steps one after another, and moves `start` to their end. `place` says
  // which nested graph it is.
  void take_records(const std::string& place, std::chrono::nanoseconds& start,
                    std::vector<StepRecord>& records) {
    if (executor_ == nullptr) return;
    // A step that failed has no record, but its own nested graphs may have some.
    recorded_.resize(
        std::max(recorded_.size(), executor_->plan().runner->built().plan.steps.size()));
    for (size_t step = 0; step < recorded_.size(); ++step) {
      const std::chrono::nanoseconds begin = start;
      for (StepRecord& record : recorded_[step]) {
        record.graph = place;
        record.start = start;
        start += record.duration;
        records.push_back(std::move(record));
      }
      std::vector<StepRecord> inner;
      executor_->take_nested_records(step, begin, inner);
      if (recorded_[step].empty()) continue;
      for (StepRecord& record : inner) {
        record.graph = place + ", " + record.graph;
        records.push_back(std::move(record));
      }
    }
    recorded_.clear();
  }

  void add_records(CacheRecords& records) const {
    if (executor_ == nullptr) return;
    if (executor_->cache != nullptr) records.push_back(executor_->cache);
    for (std::shared_ptr<const CacheRecord>& inner :
         nested_records(executor_->plan().runner->built())) {
      records.push_back(std::move(inner));
    }
  }

  // `place` says which nested graph it is.
  void describe(const std::string& place, std::vector<PlanStep>& steps) const {
    if (executor_ == nullptr) return;
    const PlanDescription& plan = executor_->described_plan();
    for (PlanStep step : plan.steps) {
      step.graph = place;
      steps.push_back(std::move(step));
    }
    for (PlanStep step : plan.nested_steps) {
      step.graph = place + ", " + step.graph;
      steps.push_back(std::move(step));
    }
  }

  PlanRunner* repeatable() const {
    // Another plan may replace this one between two runs.
    const bool may_change = executor_->swap != nullptr || executor_->plan().is_slow;
    PlanRunner* const runner = executor_->plan().runner.get();
    return !may_change && runner->io_binding().takes_addresses() ? runner : nullptr;
  }

 private:
  // Adds a step of a run. Plans for other sizes may have another step at the same index.
  void record(const PlanEvent& event) {
    if (recorded_.size() <= event.step) recorded_.resize(event.step + 1);
    StepRecord now = executor_->record_of(event);
    const auto identity = [](const StepRecord& record) {
      return std::tie(record.node, record.op, record.backend, record.algorithm, record.device);
    };
    for (StepRecord& known : recorded_[event.step]) {
      if (identity(known) != identity(now)) continue;
      known.duration += now.duration;
      known.enqueue += now.enqueue;
      known.flops += now.flops;
      known.bytes += now.bytes;
      ++known.runs;
      return;
    }
    recorded_[event.step].push_back(std::move(now));
  }

  void bind_to(std::span<const Tensor> inputs) {
    BindOptions options = options_;
    // The user waits for a run, not for bind().
    options.optimize = Optimize::Off;
    options.on_progress = {};
    for (size_t index = 0; index < inputs.size(); ++index) {
      const bool is_tensor = !inputs[index].is_empty() && !inputs[index].holds_tensors();
      if (is_tensor && !inputs_[index].empty())
        options.shapes[inputs_[index]] = inputs[index].dims();
    }
    executor_ = model_->bind_state(options, {});
  }

  std::shared_ptr<Model::State> model_;
  BindOptions options_;
  std::vector<std::string> inputs_;            // the names of those that have shapes, "" for others
  ExecutionContext* outer_ = nullptr;          // during a run of the enclosing plan
  std::unique_ptr<Executor::State> executor_;  // null before the first run, if sizes are open
  PlanWatcher watcher_ = [this](const PlanEvent& event) { record(event); };
  std::vector<std::vector<StepRecord>> recorded_;  // by step
};

class Model::State::NestedPlans : public PlannedBodies {
 public:
  NestedPlans(Model::State& outer, const BindOptions& options, const Graph& graph, const Node& node,
              bool sizes_vary, const std::vector<LoadedCache>& more) {
    for (const Body& body : node.bodies) {
      const std::string& place = places_.emplace_back(location_of(node) + ", " + body.attribute);
      refusals_.emplace_back();
      try {
        Graph closed = close_body(body.graph).graph;
        if (!sizes_vary) note_captured_types(graph, body, closed);
        plans_.push_back(
            std::make_unique<NestedPlan>(outer, options, std::move(closed), place, more));
      } catch (const Error& error) {
        // Of several branches, this one may not be taken: models ask in this way for what shapes
        // decide.
        const bool may_be_left_out =
            node.bodies.size() > 1 &&
            (error.kind() == ErrorKind::InvalidModel || error.kind() == ErrorKind::InvalidArgument);
        if (!may_be_left_out) {
          throw Error(error.kind(), place + ", " + error.where(), error.message());
        }
        plans_.push_back(nullptr);
        refusals_.back().emplace(ErrorKind::InvalidArgument, error.where(), error.message());
      }
    }
  }

  void set_outer(ExecutionContext* context) override {
    for (const std::unique_ptr<NestedPlan>& plan : plans_) {
      if (plan != nullptr) plan->set_outer(context);
    }
  }

  std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) override {
    if (refusals_[body]) throw Error(*refusals_[body]);
    return plans_[body]->run(inputs);
  }

  PlanRunner* repeatable(size_t body) override { return plans_[body]->repeatable(); }

  const PlanWatcher& watcher(size_t body) override { return plans_[body]->watcher(); }

  void take_records(std::chrono::nanoseconds start, std::vector<StepRecord>& records) override {
    for (size_t body = 0; body < plans_.size(); ++body) {
      if (plans_[body] != nullptr) plans_[body]->take_records(places_[body], start, records);
    }
  }

  void add_records(CacheRecords& records) const override {
    for (const std::unique_ptr<NestedPlan>& plan : plans_) {
      if (plan != nullptr) plan->add_records(records);
    }
  }

  void describe(std::vector<PlanStep>& steps) const override {
    for (size_t body = 0; body < plans_.size(); ++body) {
      if (plans_[body] != nullptr) plans_[body]->describe(places_[body], steps);
    }
  }

 private:
  // Sets in `closed`, the nested graph without captures, what passes have found out about captured
  // values since it was inferred.
  static void note_captured_types(const Graph& outer, const Body& body, Graph& closed) {
    for (const Capture& capture : body.graph.captures) {
      closed[capture.inner].type = outer[capture.outer].type;
    }
  }

  std::vector<std::string> places_;
  std::vector<std::unique_ptr<NestedPlan>> plans_;  // null if it cannot be bound
  std::vector<std::optional<Error>> refusals_;      // why
};

std::shared_ptr<PlannedBodies> Model::State::plan_nested_graphs(
    const BindOptions& options, const Graph& graph, const Node& node, bool sizes_vary,
    const std::vector<LoadedCache>& more) {
  return std::make_shared<NestedPlans>(*this, options, graph, node, sizes_vary, more);
}

CacheRecords nested_records(const BuiltPlan& built) {
  CacheRecords records;
  for (const std::shared_ptr<PlannedBodies>& bodies : built.bodies) {
    if (bodies != nullptr) bodies->add_records(records);
  }
  return records;
}

}  // namespace tessera
