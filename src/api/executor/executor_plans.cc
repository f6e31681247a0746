// The plans of an executor: which one a run uses, and how others are made. bind() makes the first
// one; docs/decisions/0021 and 0067 say when there are more.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "api/bind/planner.h"
#include "api/executor/dump_kernels.h"
#include "api/options/io_layouts.h"
#include "api/options/shape_ranges.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "base/threads/stopwatch.h"

namespace tessera {
namespace {

// Shapes may belong to several families: a batch of 1 broadcasts where larger ones do not.
constexpr int kMostFamilies = 32;
// Kernels that were chosen for some size serve sizes up to this many doublings from it; so at most
// this many families differ by the size they were chosen for only. To make one takes as long as
// some tens of runs, once.
constexpr double kFarDoublings = 2;
constexpr int kMostChoices = 6;
// So many sets of shapes for which there was no family show that the model has none.
constexpr int kMostFailures = 4;
// After so many runs on one set of shapes, a plan for just these replaces that of a slow family. To
// make it takes as long as hundreds of such runs, but it may be a hundred times as fast.
constexpr int kRunsOfSlowFamily = 16;

}  // namespace

void Executor::State::dump(const BuiltPlan& built) const {
  dump_kernels(built, dump_folder(), model->log, model->information_log);
}

auto Executor::State::find_plan(const std::vector<Dims>& dims) {
  return std::ranges::find_if(plans, [&](const std::unique_ptr<ShapePlan>& known) {
    for (size_t index = 0; index < dims.size(); ++index) {
      if (declared.is_read(index) && known->dims[index] != dims[index]) return false;
    }
    return true;
  });
}

void Executor::State::check_bound(const std::vector<Dims>& dims) {
  if (find_plan(dims) != plans.end()) return;
  for (size_t index = 0; index < dims.size(); ++index) {
    if (declared.is_read(index) && dims[index] != plan().dims[index]) {
      refuse_shape(plan().inputs[index], dims[index]);
    }
  }
}

void Executor::State::select_plan(const std::function<const Dims*(size_t input)>& dims_of) {
  bool is_other = false;
  for (size_t index = 0; index < declared.input_count(); ++index) {
    if (!declared.is_read(index)) continue;
    const Dims* const dims = dims_of(index);
    if (dims == nullptr || *dims == plan().dims[index]) continue;
    declared.check_range(plan().inputs[index], *dims);
    is_other = true;
  }
  const bool is_often = !is_other && plan().is_slow && ++plan().runs_of_sizes > kRunsOfSlowFamily;
  if (is_often) {
    memory.detach(plan());
    add_plan(make_plan(plan().dims));
  }
  if (is_other && !declared.are_fixed()) {
    std::vector<Dims> wanted = plan().dims;
    for (size_t index = 0; index < wanted.size(); ++index) {
      const Dims* const dims = declared.is_read(index) ? dims_of(index) : nullptr;
      if (dims != nullptr) wanted[index] = *dims;
    }
    if (options.run.fixed_shapes) check_bound(wanted);
    switch_to(wanted);
  }
  memory.attach(plan());
}

void Executor::State::switch_to(const std::vector<Dims>& dims) {
  memory.detach(plan());
  const auto found = find_plan(dims);
  if (found != plans.end()) {
    std::rotate(plans.begin(), found, found + 1);
    return;
  }
  const bool has_family = switch_to_family(dims);
  if (has_family && !is_chosen_for_others(dims)) return;
  std::unique_ptr<ShapePlan> made = make_family(dims);
  if (made == nullptr && has_family) return;
  if (made == nullptr) return add_plan(make_plan(dims));
  if (!extend_choice(*made)) add_plan(std::move(made));
}

bool Executor::State::is_chosen_for_others(const std::vector<Dims>& dims) const {
  // With prices, and for ranges, bind() has chosen; a family for other sizes would be the same.
  if (has_prices || !options.shape_ranges.empty() || families_made >= kMostChoices) return false;
  return plan().family->distance(log2_elements(dims)) > kFarDoublings;
}

bool Executor::State::switch_to_family(const std::vector<Dims>& dims) {
  nearest.clear();
  for (const std::unique_ptr<ShapePlan>& one : plans) {
    if (one->family != nullptr) nearest.push_back(one.get());
  }
  const double wanted = log2_elements(dims);
  std::ranges::sort(nearest, {},
                    [&](const ShapePlan* one) { return one->family->distance(wanted); });
  const auto resized =
      std::ranges::find_if(nearest, [&](ShapePlan* one) { return one->resize(dims); });
  if (resized == nearest.end()) return false;
  const auto found = std::ranges::find(plans, *resized, &std::unique_ptr<ShapePlan>::get);
  std::rotate(plans.begin(), found, found + 1);
  return true;
}

bool Executor::State::extend_choice(const ShapePlan& made) {
  const auto same = std::ranges::find_if(plans, [&](const std::unique_ptr<ShapePlan>& one) {
    return one->family != nullptr && one->has_choice_of(made);
  });
  if (same == plans.end() || !(*same)->resize(made.dims)) return false;
  ShapeFamily& family = *(*same)->family;
  family.chosen_from = std::min(family.chosen_from, made.family->chosen_from);
  family.chosen_to = std::max(family.chosen_to, made.family->chosen_to);
  std::rotate(plans.begin(), same, same + 1);
  return true;
}

void Executor::State::add_plan(std::unique_ptr<ShapePlan> made) {
  // Those that the user named stay.
  const auto is_named = [](const std::unique_ptr<ShapePlan>& known) { return known->is_named; };
  const auto others = std::ranges::count_if(plans, std::not_fn(is_named));
  if (!made->is_named && others >= options.limits.most_shapes) {
    const auto last = std::find_if_not(plans.rbegin(), plans.rend(), is_named);
    if (last->get() == swapped) swapped = nullptr;
    plans.erase(std::next(last).base());
    model->stored.drop_packs_of_shapes();
  }
  plans.insert(plans.begin(), std::move(made));
}

BindOptions Executor::State::options_for(const std::vector<Dims>& dims) const {
  BindOptions wanted = options;
  wanted.tune.tuning_inputs.clear();  // they have the shapes of bind()
  for (size_t index = 0; index < dims.size(); ++index) {
    const ValueDescription& input = plan().inputs[index];
    if (declared.is_read(index) && !has_no_shape(input)) wanted.shapes[input.name] = dims[index];
  }
  return wanted;
}

std::vector<const BuiltPlan*> Executor::State::built_plans() const {
  std::vector<const BuiltPlan*> built;
  for (const std::unique_ptr<ShapePlan>& one : plans) {
    built.push_back(&one->runner->built());
  }
  return built;
}

std::unique_ptr<ShapePlan> Executor::State::make_plan(const std::vector<Dims>& dims) {
  const Stopwatch stopwatch;
  const BindOptions wanted = options_for(dims);
  Model::State::Planner planner(*model, wanted, BuildPurpose::OtherShapes);
  planner.reuse(nearest_choice(dims), built_plans());
  PlanResult result = planner.build();
  model->loaded.release_packed(result.built);
  auto made = std::make_unique<ShapePlan>(std::move(result), wanted, context, *registry);
  made->seconds = stopwatch.read().seconds;
  dump(made->runner->built());
  return made;
}

void Executor::State::plan_ahead(const std::function<bool(const TuneProgress&)>& on_progress) {
  if (options.more_shapes.empty() && options.shape_ranges.empty()) return;
  const std::vector<Dims> first = plan().dims;
  plan().is_named = !options.more_shapes.empty();
  for (const std::map<std::string, Dims>& shapes : options.more_shapes) {
    BindOptions wanted = options;
    wanted.shapes = shapes;
    wanted.shape_ranges.clear();
    wanted.more_shapes.clear();
    wanted.tune.tuning_inputs.clear();  // they have the first shapes
    wanted.on_progress = on_progress;
    const Stopwatch stopwatch;
    auto made = std::make_unique<ShapePlan>(model->plan(wanted), wanted, context, *registry);
    made->seconds = stopwatch.read().seconds;
    made->is_named = true;
    add_plan(std::move(made));
  }
  if (!options.shape_ranges.empty() && !declared.are_fixed()) {
    add_families_of_ranges(on_progress);
  }
  switch_to(first);
}

const tuning::ReusedChoice* Executor::State::nearest_choice(const std::vector<Dims>& dims) const {
  if (!has_prices) return nullptr;
  const double wanted = log2_elements(dims);
  return &std::ranges::min_element(choices, {}, [&](const ChoiceForShapes& known) {
            return std::abs(known.chosen_at - wanted);
          })->choice;
}

std::vector<Dims> Executor::State::dims_at(double share) const {
  BindOptions wanted = options;
  for (const auto& [input, ranges] : options.shape_ranges) wanted.shapes.erase(input);
  std::vector<Dims> dims = model->loaded.input_dims(with_shapes_at(wanted, share));
  for (size_t index = 0; index < dims.size(); ++index) {
    if (!declared.is_read(index)) dims[index] = plan().dims[index];
  }
  return dims;
}

std::vector<std::vector<Dims>> Executor::State::other_shapes() const {
  std::vector<std::vector<Dims>> others;
  for (const std::unique_ptr<ShapePlan>& known : plans) others.push_back(known->dims);
  if (!options.shape_ranges.empty()) others.push_back(dims_at(kLargest));
  return others;
}

void Executor::State::add_families_of_ranges(
    const std::function<bool(const TuneProgress&)>& on_progress) {
  const ShapePlan* const first = &plan();
  const std::vector<Dims> largest = dims_at(kLargest);
  bool is_slow = false;
  const auto add = [&](const std::vector<Dims>& dims) {
    std::unique_ptr<ShapePlan> family = make_family(dims);
    if (family == nullptr) return false;
    is_slow = is_slow || family->is_slow;
    if (family->resize(largest)) {
      family->family->plan.keep_offsets();
    } else {
      model->information_log.warn("the largest sizes of the ranges get a plan of their own");
    }
    if (!extend_choice(*family)) add_plan(std::move(family));
    return true;
  };
  const std::vector<Dims> middle = plan().dims;
  if (!add(middle)) return;
  for (const double share : other_shares(options)) {
    const std::vector<Dims> dims = dims_at(share);
    const auto families = std::ranges::count_if(
        plans, [](const std::unique_ptr<ShapePlan>& one) { return one->family != nullptr; });
    if (families >= options.limits.most_shapes) break;
    if (!model->loaded.explain_refusal(options_for(dims)).empty()) continue;
    if (has_prices) choose_for(dims, on_progress);
    if (!add(dims)) break;
  }
  // The family is as fast as the plan of the middle, which would keep weights in other layouts.
  if (is_slow || !options.more_shapes.empty() || swap != nullptr) return;
  std::erase_if(plans, [&](const std::unique_ptr<ShapePlan>& one) { return one.get() == first; });
  model->stored.packs().drop_unused();
}

void Executor::State::choose_for(const std::vector<Dims>& dims,
                                 const std::function<bool(const TuneProgress&)>& on_progress) {
  BindOptions wanted = options_for(dims);
  wanted.shape_ranges.clear();
  if (Model::State::Planner(*model, wanted, BuildPurpose::Family).knows_family()) return;
  wanted.on_progress = on_progress;
  choices.push_back({log2_elements(dims), model->plan(wanted).reused});
}

std::unique_ptr<ShapePlan> Executor::State::make_family(const std::vector<Dims>& dims) {
  const bool may_make = families_made < kMostFamilies && families_failed < kMostFailures;
  if (!options.run.families || !may_make) return nullptr;
  std::string reason;
  for (const FamilySizes sizes : {FamilySizes::Typical, FamilySizes::Wanted}) {
    try {
      std::variant<std::unique_ptr<ShapePlan>, std::string> made = build_family(dims, sizes);
      auto* const plan = std::get_if<std::unique_ptr<ShapePlan>>(&made);
      if (plan != nullptr) {
        ++families_made;
        return std::move(*plan);
      }
      reason = std::get<std::string>(made);
    } catch (const Error& error) {
      // Planning for these shapes alone reports it, if it fails, too.
      reason = error.what();
    }
  }
  ++families_failed;
  model->information_log.warn("inputs of these shapes get a plan of their own: " + reason);
  return nullptr;
}

std::variant<std::unique_ptr<ShapePlan>, std::string> Executor::State::build_family(
    const std::vector<Dims>& dims, FamilySizes near) {
  using Planner = Model::State::Planner;
  const Stopwatch stopwatch;
  const BindOptions wanted = options_for(dims);
  Planner planner(*model, wanted, BuildPurpose::Family);
  planner.reuse(nearest_choice(dims), built_plans());
  std::variant<Planner::FamilyPlan, UnbuildablePlan> built =
      planner.build_family(near, {dims, other_shapes()});
  if (auto* const none = std::get_if<UnbuildablePlan>(&built)) return std::move(none->reason);
  auto& [result, sizes, is_slow] = std::get<Planner::FamilyPlan>(built);
  model->loaded.release_packed(result.built);
  auto made =
      std::make_unique<ShapePlan>(std::move(result), std::move(sizes), wanted, context, *registry);
  std::string fixed = made->explain_fixed();
  if (!fixed.empty()) return fixed;
  if (!made->resize(dims)) return "its kernels do not take these sizes";
  made->family->chosen_from = made->family->chosen_to = log2_elements(dims);
  made->is_slow = is_slow;
  made->seconds = stopwatch.read().seconds;
  dump(made->runner->built());
  return made;
}

void Executor::State::swap_to(PlanSwap::Build build, int64_t runs) {
  swapped = &plan();
  swap = std::make_unique<PlanSwap>(std::move(build), runs);
}

void Executor::State::swap_before_run() {
  if (swap->is_ready_before_run()) take_swap();
}

void Executor::State::take_swap() {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  PlanSwap::Built built = swap->take();
  swap.reset();
  std::string failure = std::move(built.failure);
  // The plan to replace may have been evicted for plans of other shapes.
  if (built.next && swapped != nullptr) {
    try {
      replace_swapped(std::move(built.next->plan));
      if (built.next->record) cache = std::move(built.next->record);
      stages.push_back({.name = "swap",
                        .start = start - bound_at,
                        .duration = std::chrono::steady_clock::now() - start});
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  swapped = nullptr;
  if (!failure.empty()) {
    model->log.warn("the faster plan cannot be used, so the first plan stays in use: " + failure);
  }
}

void Executor::State::replace_swapped(PlanResult result) {
  PlanDescription description = describe(result, context.pool().threads(), *registry);
  std::unique_ptr<PlanRunner> runner =
      swapped->runner_of(std::move(result.built), options, context);
  // The next run attaches the bound memory to the new plan.
  if (swapped == &plan()) memory.detach(plan());
  swapped->runner = std::move(runner);
  dump(swapped->runner->built());
  swapped->description = std::move(description);
  swapped->kernels = result.kernels;
  swapped->reused_kernels = result.reused_kernels;
  swapped->loaded_kernels = result.loaded_kernels;
}

}  // namespace tessera
