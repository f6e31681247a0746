// What stands behind the public handle Executor.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/plan_swap.h"
#include "api/shape_plan.h"
#include "engine/workplace.h"
#include "graph/type.h"
#include "ops/registry.h"
#include "store/cache_record.h"
#include "tessera/tessera.h"
#include "tune/carried_choice.h"
#include "tune/cost_table.h"

namespace tessera {

struct Executor::State {
  State(std::shared_ptr<const ops::Registry> ops, const BindOptions& bound);

  // Shared with the model, so that an executor may outlive it; kernels of the reference need it.
  std::shared_ptr<const ops::Registry> registry;
  // By which it is planned anew.
  std::shared_ptr<Model::State> model;
  BindOptions options;
  bool has_prices = false;          // chosen by `costs`, not in order
  bool is_plan_cached = false;      // then: the cache knew it, and has the costs
  tuning::CarriedChoice carried;    // then: for other shapes
  std::vector<bool> is_shape_read;  // by input: something of the model depends on its dimensions
  bool has_one_shape = false;       // the model declares all of these as numbers
  std::map<std::string, Shape> declared;  // of inputs and outputs, as far as the model tells
  Workplace place;
  // The first is the one at hand; the others by when they were, the newest first.
  std::vector<std::unique_ptr<ShapePlan>> plans;
  // Of the caller's memory, by input and by name of output.
  std::vector<std::optional<AnyTensor>> bound_inputs;
  std::map<std::string, Tensor> bound_outputs;
  bool is_settled = false;    // the plan at hand has the memory that is bound
  bool is_all_bound = false;  // and needs no more than that, known since the last change
  tuning::CostTable costs;
  std::vector<StageRecord> stages;
  std::chrono::steady_clock::time_point bound_at;  // which the stages count from
  std::shared_ptr<const CacheRecord> cache;        // null where it was bound without optimize
  bool is_recording = false;
  std::vector<StepRecord> steps;
  std::once_flag are_costs_written;
  std::string costs_text;          // of `costs`, once somebody asked
  ShapePlan* swapped = nullptr;    // the plan that another one of the same shapes will stand for
  std::unique_ptr<PlanSwap> swap;  // that one; null where none is to come

  ShapePlan& plan() const { return *plans.front(); }

  // What bind() came to; the model is known.
  void add_first_plan(PlanResult result);

  // Before a run: has the plan at hand be the one for the dimensions of what is given or bound,
  // with the memory that is bound. Throws InvalidArgument for another element type or storage.
  template <class AnyOrTensor>
  void settle(const std::map<std::string, AnyOrTensor>& given);
  // By input the dimensions that it comes with; null: those of the plan at hand.
  void settle(const std::function<const Dims*(size_t input)>& dims_of);
  template <class AnyOrTensor>
  std::vector<Tensor> inputs_in_order(const std::map<std::string, AnyOrTensor>& given) const;
  template <class AnyOrTensor>
  std::vector<Tensor> run(const std::map<std::string, AnyOrTensor>& given);
  void run_bound();

  // Has the plan at hand be another one, once it is built; that begins before the second run.
  void swap_to(PlanSwap::Build build);
  // Changes over where the other plan is there.
  void swap_before_run();
  void take_swap();
  void change_over(PlanResult result);

  // Makes the plan for these dimensions, by input, the one at hand; it is made where there is none.
  // Throws as Model::bind() does; then nothing has changed.
  void switch_to(const std::vector<Dims>& dims);
  std::unique_ptr<ShapePlan> make_plan(const std::vector<Dims>& dims);
  [[noreturn]] void refuse_shape(size_t input, const Dims& dims) const;
  bool is_as_declared(const std::string& name, const Dims& dims) const;
  // An input that nothing reads any more, maybe because its size was all that anybody wanted.
  // Throws InvalidArgument.
  void check_declared(const ValueDescription& input, const Dims& dims) const;
  // Whether there may be shapes for which a value of this name has these dimensions.
  bool may_become(const std::string& name, const Dims& dims) const;
  void bind_input(size_t input, const AnyTensor& memory);
  void bind_output(size_t output, Tensor memory);
  // Hands the caller's memory to the plan at hand, or takes it from there.
  void bind_memory();
  void unbind_memory();

  // Whether an output of this description, as far as it is known, can be written there.
  static bool is_for(const ValueDescription& output, const Tensor& memory);
  // Throws InvalidArgument naming what is not bound.
  void check_all_bound() const;
  // Which input or output has this name; throws InvalidArgument, naming all, where none has.
  size_t input_named(const std::string& name) const;
  size_t output_named(const std::string& name) const;
  void record(const PlanEvent& event, std::chrono::steady_clock::time_point run_start);
};

}  // namespace tessera
