// Model::bind(): looks up a known plan and verifies it if it is untrusted, or searches for a plan;
// builds it; and keeps the results. background_plans.cc has what follows behind the runs.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/bind/planner.h"
#include "api/options/backends_state.h"
#include "api/options/bind_options.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "base/errors/log.h"
#include "base/memory/memory.h"
#include "cache/origin.h"
#include "store/store.h"

namespace tessera {
namespace {

constexpr double kSecondsToOpenCompiler = 0.03;
constexpr double kMaxRuns = 1e15;

// Returns a callback that reports to on_progress what bind() waits for.
std::function<bool(const std::string& what)> waiting_reporter(const BindOptions& options) {
  return [&options](const std::string& what) {
    return !options.on_progress ||
           options.on_progress({.what = what, .phase = BindPhase::Waiting, .can_stop = true});
  };
}

}  // namespace

// One call of bind(): looks up, verifies, builds, keeps, and creates the executor, in this order.
// Each object makes one plan.
class Model::State::Binder {
 public:
  Binder(Model::State& model, const BindOptions& given, const std::vector<LoadedCache>& more)
      : model_(model),
        store_(model.backends.state_->store),
        planner_(model, given, BuildPurpose::Bind),
        options_(planner_.options()),
        more_(more),
        is_optimized_(is_optimizing(options_)),
        waits_(optimize_of(options_) == Optimize::Now || options_.cache.frozen) {
    planner_.set_more_caches(more_);
  }

  // Finds or makes the plan.
  PlanResult plan() {
    model_.backends.state_->warn_once_if_slow(options_, model_.log);
    if (is_optimized_) {
      look_up();
    } else if (model_.loaded.source().bundle) {
      planner_.use_stored_parts();
    }
    std::optional<PlanResult> known = build_stored();
    is_cached_ = known.has_value();
    if (stored_ && !known) search_.emplace(std::move(*stored_).search());
    PlanResult result = known ? *std::move(known) : planner_.build(search_ ? &*search_ : nullptr);
    planner_.clock().note_bytes(result.pack_bytes);
    if (is_optimized_) store_.prices().add(planner_.costs());
    // Measurements and packs are valid only if the files of the model have not changed meanwhile.
    model_.loaded.check_weights();
    record_ = keep(result);
    if (model_.on_bound) model_.on_bound(planner_, result, record_.get());
    return result;
  }

  std::unique_ptr<Executor::State> bind() {
    PlanResult result = plan();
    const std::optional<CompilationGain> gain = result.compilation_gain;
    auto state =
        std::make_unique<Executor::State>(model_.shared_from_this(), options_, std::move(result));
    state->has_prices = planner_.has_prices();
    state->is_plan_cached = is_cached_ && record_ != nullptr;
    state->costs = std::move(planner_.costs());
    state->cache = std::move(record_);
    state->stages = planner_.clock().take();
    state->bound_at = planner_.clock().origin();
    if (measures_behind_) measure_behind(*state, {});
    state->plan_ahead(options_.on_progress);
    // Kernels that were measured are gone.
    if (is_optimized_ && !is_cached_) return_freed_memory();
    // A faster plan is for exact shapes. If ranges have a plan for all sizes, nothing needs it.
    if (measures_behind_ || state->plan().family != nullptr) return state;
    if (is_cached_) {
      begin_swap(*state);
    } else if (gain && may_swap(options_)) {
      compile_behind(*state, *gain);
    }
    return state;
  }

 private:
  void take(LookupResult answer) {
    stored_.reset();
    if (auto* const one = std::get_if<StoredPlan>(&answer)) stored_.emplace(std::move(*one));
    if (auto* const task = std::get_if<PlanSearch>(&answer)) search_.emplace(std::move(*task));
  }

  // Looks up a stored plan, and verifies it if it is untrusted; otherwise takes the task to search
  // for one.
  void look_up() {
    planner_.clock().begin("look up");
    if (!waits_) return find_known();
    take(store_.look_up(planner_.request(more_), waiting_reporter(options_), model_.log));
    planner_.use_stored_parts();
    if (!stored_ || cache::trusts_results(stored_->origin())) return;
    const std::string wrong = planner_.explain_wrong_kernel(*stored_);
    if (wrong.empty()) return;
    take(std::move(*stored_).refuse("a plan that somebody else found is not used: " + wrong,
                                    waiting_reporter(options_)));
  }

  // Takes a plan that is known already. Without one, this bind chooses as if it may not measure,
  // and measuring follows behind the runs.
  void find_known() {
    stored_ = store_.find(planner_.request(more_), model_.log);
    planner_.use_stored_parts();
    if (stored_) return;
    is_optimized_ = false;
    measures_behind_ = true;
    planner_.choose_unmeasured();
  }

  // nullopt if there is no stored plan, if it can no longer be built, or if all candidates are to
  // be described.
  std::optional<PlanResult> build_stored() {
    if (!stored_ || options_.tune.describes_candidates) return std::nullopt;
    const tuning::KnownPlan& plan = stored_->plan();
    change_ = stored_->change();
    is_to_resume_ = stored_->is_to_resume();
    if (!plan.startup_plan.empty() && may_swap(options_)) {
      std::optional<PlanResult> first = build_only(plan.startup_plan.front());
      if (first) {
        faster_ = first->plan = plan;
        return first;
      }
    }
    return build_only(plan);
  }

  // nullopt if the plan can no longer be built.
  std::optional<PlanResult> build_only(const tuning::KnownPlan& plan) {
    std::variant<PlanResult, UnbuildablePlan> built = planner_.build_only(plan);
    auto* const result = std::get_if<PlanResult>(&built);
    return result == nullptr ? std::nullopt : std::optional(std::move(*result));
  }

  // Returns null without optimize.
  std::shared_ptr<const CacheRecord> keep(PlanResult& result) {
    std::shared_ptr<const CacheRecord> record;
    if (is_optimized_) {
      planner_.clock().begin("keep");
      record = is_cached_ ? std::move(*stored_).keep(result)
                          : std::move(*search_).keep(result, planner_.costs());
      if (!options_.cache.frozen) planner_.keep_users_prices(result.tuning.seconds);
    }
    model_.stored.note_record(record, nested_records(result.built));
    model_.loaded.release_packed(result.built,
                                 result.startup_plan ? &*result.startup_plan : nullptr,
                                 /*returns_memory=*/true);
    if (is_optimized_ && !options_.cache.frozen) model_.stored.keep_blobs();
    // If a plan was saved, later processes will use it, and will also need its packs, kernels and
    // index. A search that the user stopped saves prices only, and he waits for the end.
    const bool is_stopped = result.tuning.is_stopped && !result.tuning.is_out_of_time;
    if (record && !options_.cache.frozen && !is_stopped &&
        (result.is_known_plan || record->is_saved())) {
      planner_.clock().begin("keep");
      planner_.keep_stored(result.built);
    }
    return record;
  }

  // Prepares a swap to kernels that are compiled after so many runs that the same number of runs
  // with them would pay for it.
  void compile_behind(Executor::State& state, const CompilationGain& gain) {
    const double runs = (kSecondsToOpenCompiler + gain.compile_seconds) / gain.seconds_per_run;
    state.swap_to([model = model_.shared_from_this(), options = state.options](
                      CancellationToken& end) { return model->build_behind(options, {}, end); },
                  1 + static_cast<int64_t>(std::min(runs, kMaxRuns)));
  }

  // Prepares a swap to the plan that measuring finds, or to `faster` if it finds none.
  void measure_behind(Executor::State& state, const std::optional<tuning::KnownPlan>& faster) {
    if (!may_swap(options_)) return;
    // The executor outlives its swap.
    BackgroundBuild wanted{
        .measures = true, .plan = faster, .is_busy = [&context = std::as_const(state.context)] {
          return context.is_running();
        }};
    state.swap_to([model = model_.shared_from_this(), options = state.options,
                   wanted = std::move(wanted)](CancellationToken& end) {
      return model->build_behind(options, wanted, end);
    });
  }

  // Prepares a swap if another plan is faster or may be; it is measured and built in the background
  // of the runs.
  void begin_swap(Executor::State& state) {
    const bool may_measure = !options_.cache.frozen && may_swap(options_);
    if (may_measure && (!change_.empty() || is_to_resume_)) {
      if (!change_.empty()) {
        model_.information_log.warn(change_ + "; what these offer now is measured behind the runs");
      }
      measure_behind(state, faster_);
    } else if (faster_) {
      state.swap_to([model = model_.shared_from_this(), options = state.options,
                     wanted = BackgroundBuild{.plan = faster_}](CancellationToken& end) {
        return model->build_behind(options, wanted, end);
      });
    }
  }

  Model::State& model_;
  Store& store_;
  Planner planner_;
  const BindOptions& options_;
  const std::vector<LoadedCache>& more_;
  bool is_optimized_;
  bool waits_;                    // for measuring, or for another process that measures
  bool is_cached_ = false;        // the plan came from a cache
  bool measures_behind_ = false;  // no plan is known, and this bind does not wait
  std::optional<StoredPlan> stored_;
  std::optional<PlanSearch> search_;
  std::shared_ptr<const CacheRecord> record_;  // of the plan; null without optimize
  std::optional<tuning::KnownPlan> faster_;    // the plan to swap to
  bool is_to_resume_ = false;                  // the search for the stored plan was cut short
  std::string change_;  // how libraries changed since the stored plan was found; "" if they did not
};

PlanResult Model::State::plan(const BindOptions& wanted) {
  return Binder(*this, wanted, {}).plan();
}

Executor Model::State::bind(const BindOptions& given, const std::vector<LoadedCache>& more) {
  return Executor(bind_state(given, more));
}

std::unique_ptr<Executor::State> Model::State::bind_state(const BindOptions& given,
                                                          const std::vector<LoadedCache>& more) {
  return Binder(*this, given, more).bind();
}

TuningQuote Model::quote_tuning(const BindOptions& options) const {
  State::Planner planner(*state_, options, BuildPurpose::Quote);
  TuningQuote quote = planner.quote();
  BindOptions without_retune = planner.options();
  without_retune.cache.retune = false;
  const std::optional<StoredPlan> stored = state_->backends.state_->store.find(
      state_->stored.request(without_retune, {}, planner.pool().threads()), state_->log);
  quote.is_known = stored && stored->change().empty() && !stored->is_to_resume();
  return quote;
}

}  // namespace tessera
