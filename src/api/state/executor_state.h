// The implementation of Executor: its plans, the memory of the caller, and the results of bind().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "api/state/bound_memory.h"
#include "api/state/declared_shapes.h"
#include "api/state/model_graph.h"
#include "api/state/plan_swap.h"
#include "api/state/shape_plan.h"
#include "base/threads/stopwatch.h"
#include "engine/execution_context.h"
#include "ops/registry.h"
#include "price/cost_table.h"
#include "price/reused_choice.h"
#include "store/cache_record.h"
#include "tessera/tessera.h"

namespace tessera {

// What the first run needs to bind the model, and what is known before. It stays afterwards,
// because other threads may cancel at any time.
struct Executor::Deferred {
  Deferred(std::shared_ptr<Model::State> bound_model, const BindOptions& bound);

  // Ends measuring, or the run. For any thread, and for signal handlers.
  void cancel();
  // Whether the first run takes longer than the time limit.
  bool is_late() const;
  // Throws InvalidArgument if a shape, by the name of an input, is outside of the ranges of bind(),
  // or is not its own with fixed_shapes.
  void check_shapes(const std::map<std::string, Dims>& shapes) const;

  std::atomic<bool> is_cancelled = false;
  std::atomic<ExecutionContext*> context = nullptr;  // null before the first run

  std::shared_ptr<Model::State> model;
  BindOptions options;
  int threads = 1;
  std::vector<ValueDescription> inputs;  // as the model declares them
  std::vector<ValueDescription> outputs;
  std::map<std::string, AnyTensor> bound_inputs;
  std::map<std::string, Tensor> bound_outputs;
  double time_limit_seconds = 0;
  Stopwatch since_run;  // since the first run began
  bool is_recording = false;
  std::vector<StageRecord> no_stages = {};
  std::vector<StepRecord> no_steps = {};
};

struct Executor::State {
  // `first` is the plan that bind() of `bound_model` made with the options `bound`.
  State(std::shared_ptr<Model::State> bound_model, const BindOptions& bound, PlanResult first);

  // Shared with the model: reference kernels need it, and an executor may outlive its model.
  std::shared_ptr<const ops::Registry> registry;
  // For plans of other shapes.
  std::shared_ptr<Model::State> model;
  BindOptions options;
  bool has_prices = false;      // the plan was chosen by `costs`, not in order
  bool is_plan_cached = false;  // the plan and its costs are in the cache record
  // The choices of bind(), for other shapes: the nearest one is reused.
  struct ChoiceForShapes {
    double chosen_at = 0;  // log2_elements()
    tuning::ReusedChoice choice;
  };
  std::vector<ChoiceForShapes> choices;
  DeclaredShapes declared;
  ExecutionContext context;
  // The current plan, then the others, the most recently used first.
  std::vector<std::unique_ptr<ShapePlan>> plans;
  std::vector<ShapePlan*> nearest;  // scratch of switch_to_family()
  int families_made = 0;
  int families_failed = 0;
  BoundMemory memory;
  tuning::CostTable costs;
  std::vector<StageRecord> stages;
  std::chrono::steady_clock::time_point bound_at;  // start of bind(); `stages` count from it
  std::shared_ptr<const CacheRecord> cache;        // null unless it was bound with optimize
  bool is_recording = false;
  std::vector<StepRecord> steps;
  std::once_flag are_costs_written;
  std::string costs_text;          // `costs` as text, written on first use
  ShapePlan* swapped = nullptr;    // the plan that `swap` will replace; null if it was evicted
  std::unique_ptr<PlanSwap> swap;  // builds a faster plan; null if none is to come

  ShapePlan& plan() const { return *plans.front(); }
  // The description of this plan, with the nested graphs as they are planned now.
  const PlanDescription& described_plan();

  template <class AnyOrTensor>
  std::vector<Tensor> run(const std::map<std::string, AnyOrTensor>& given);
  void run_bound();
  // The same for inputs in their order, which the caller has checked: those of a nested graph.
  std::vector<Tensor> run_in_order(std::span<const Tensor> inputs, const PlanWatcher& watcher);

  // Selects the plan for the dimensions of the inputs that are passed or bound, and attaches the
  // bound memory. Throws InvalidArgument if an element type or storage differs.
  template <class AnyOrTensor>
  void select_plan(const std::map<std::string, AnyOrTensor>& given);
  // `dims_of` returns an input's dimensions, or null for those of the current plan.
  void select_plan(const std::function<const Dims*(size_t input)>& dims_of);
  // The plan for these dimensions, by input; plans.end() if there is none.
  auto find_plan(const std::vector<Dims>& dims);
  // Throws InvalidArgument if there is no plan for these dimensions, as for fixed_shapes.
  void check_bound(const std::vector<Dims>& dims);
  // Selects the plan for these dimensions, which are by input; makes a plan if there is none.
  // Throws as Model::bind() does; then nothing has changed.
  void switch_to(const std::vector<Dims>& dims);
  // Makes the plans for the other shapes, and for the ranges, that bind() was given.
  void plan_ahead(const std::function<bool(const TuneProgress&)>& on_progress);
  // Plans for families whose kernels were chosen for several sizes of the ranges, with an arena
  // that is large enough for all of them.
  void add_families_of_ranges(const std::function<bool(const TuneProgress&)>& on_progress);
  // Finds out what is fastest for these shapes, unless a plan of their family is stored.
  void choose_for(const std::vector<Dims>& dims,
                  const std::function<bool(const TuneProgress&)>& on_progress);
  const tuning::ReusedChoice* nearest_choice(const std::vector<Dims>& dims) const;
  // By input: the sizes at this share of the ranges, and for inputs without any those of the
  // current plan.
  std::vector<Dims> dims_at(double share) const;
  // The shapes of all plans, and the largest sizes of the ranges.
  std::vector<std::vector<Dims>> other_shapes() const;
  // Makes it the current plan. The least recently used one may have to go.
  void add_plan(std::unique_ptr<ShapePlan> made);
  std::unique_ptr<ShapePlan> make_plan(const std::vector<Dims>& dims);
  // Gives the plan of a family these sizes, and makes it the current one: of those that can have
  // them the one whose kernels were chosen for the nearest sizes. False if there is none.
  bool switch_to_family(const std::vector<Dims>& dims);
  // Whether the kernels of the current family were chosen for sizes far from these, so that another
  // family may be faster.
  bool is_chosen_for_others(const std::vector<Dims>& dims) const;
  // If another family has the choice of `made`, makes that one the current one, with the sizes of
  // `made`, and notes that its choice is for these, too.
  bool extend_choice(const ShapePlan& made);
  // nullptr if these shapes belong to no family; the log gets the reason.
  std::unique_ptr<ShapePlan> make_family(const std::vector<Dims>& dims);
  std::variant<std::unique_ptr<ShapePlan>, std::string> build_family(const std::vector<Dims>& dims,
                                                                     FamilySizes near);
  BindOptions options_for(const std::vector<Dims>& dims) const;
  std::vector<const BuiltPlan*> built_plans() const;
  template <class AnyOrTensor>
  std::vector<Tensor> inputs_in_order(const std::map<std::string, AnyOrTensor>& given) const;

  // Calls `build` in the background to make a faster plan for the current shapes, after so many
  // runs.
  void swap_to(PlanSwap::Build build, int64_t runs = 1);
  // Swaps to the faster plan if it is ready.
  void swap_before_run();
  void take_swap();
  void replace_swapped(PlanResult result);
  // Writes the compiled kernels of a new plan to files if the environment asks for that.
  void dump(const BuiltPlan& built) const;

  // The index of the input or output of this name. Throws InvalidArgument, listing all, if there is
  // none.
  size_t input_named(const std::string& name) const;
  size_t output_named(const std::string& name) const;
  // The step of an event, without its start.
  StepRecord record_of(const PlanEvent& event) const;
  // Appends what the nested graphs of a step recorded, if it has any, in all plans of this
  // executor.
  void take_nested_records(size_t step, std::chrono::nanoseconds start,
                           std::vector<StepRecord>& records) const;
  class Recording;
};

}  // namespace tessera
