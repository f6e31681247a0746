// Finds and builds plans in the background of an executor's runs.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "api/bind/planner.h"
#include "api/options/backends_state.h"
#include "api/state/model_state.h"
#include "api/state/plan_swap.h"
#include "base/memory/memory.h"
#include "base/threads/background_task.h"
#include "compile/build_plan.h"
#include "store/store.h"

namespace tessera {
namespace {

constexpr auto kPollTime = std::chrono::milliseconds(50);
// How long measuring waits for the end of a run. A program may run all the time.
constexpr auto kMaxPause = std::chrono::milliseconds(20);
constexpr auto kPausePoll = std::chrono::microseconds(100);

// Repeats the look-up while another thread or process measures the model. nullopt if cancelled.
std::optional<LookupResult> wait_for_answer(
    const std::function<std::optional<LookupResult>()>& look_up, CancellationToken& end) {
  while (!end.is_cancelled()) {
    std::optional<LookupResult> answer = look_up();
    if (answer) return answer;
    std::this_thread::sleep_for(kPollTime);
  }
  return std::nullopt;
}

// Waits while a run is going on, because measuring would slow it down.
void give_way(CancellationToken& end, const std::function<bool()>& is_busy) {
  const auto limit = std::chrono::steady_clock::now() + kMaxPause;
  while (is_busy() && !end.is_cancelled() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(kPausePoll);
  }
}

// Throws Cancelled if a plan that is built in the background is no longer needed.
void require_wanted(CancellationToken& end) {
  if (!end.is_cancelled()) return;
  throw Error(ErrorKind::Cancelled, "the faster plan", "it is no longer needed");
}

}  // namespace

class Model::State::BackgroundBuilder {
 public:
  // All must outlive this.
  BackgroundBuilder(State& model, const BindOptions& options, CancellationToken& end)
      : model_(model), options_(options), end_(end) {}

  // nullopt if it was cancelled, or if the plan that another process stored cannot be built.
  std::optional<NextPlan> measure(const std::function<bool()>& is_busy) {
    lower_priority();
    BindOptions options = options_;
    options.on_progress = [&](const TuneProgress&) {
      if (is_busy) give_way(end_, is_busy);
      return !end_.is_cancelled();
    };
    Planner planner(model_, options, BuildPurpose::Measure);
    std::optional<NextPlan> found = look_up_or_measure(planner);
    if (!found || end_.is_cancelled()) return std::nullopt;
    return keep(planner, *std::move(found));
  }

  NextPlan compile() {
    Planner planner(model_, options_, BuildPurpose::Compile, [this] { require_wanted(end_); });
    PlanResult result = planner.build();
    model_.loaded.check_weights();
    return keep(planner, {.plan = std::move(result)});
  }

  NextPlan swap_to(const tuning::KnownPlan& plan) {
    Planner planner(model_, options_, BuildPurpose::Swap, [this] { require_wanted(end_); });
    auto built = planner.build_only(plan);
    if (const auto* const unbuildable = std::get_if<UnbuildablePlan>(&built)) {
      throw Error(ErrorKind::Unsupported, "the faster plan", unbuildable->reason);
    }
    model_.loaded.check_weights();
    return keep(planner, {.plan = std::get<PlanResult>(std::move(built))});
  }

 private:
  // Builds the plan that another process has stored meanwhile, or measures what is not known yet
  // and chooses.
  std::optional<NextPlan> look_up_or_measure(Planner& planner) {
    Store& store = model_.backends.state_->store;
    std::optional<LookupResult> answer =
        wait_for_answer([&] { return store.try_look_up(planner.request(), model_.log); }, end_);
    if (!answer) return std::nullopt;
    if (auto* const found = std::get_if<StoredPlan>(&*answer)) {
      auto built = planner.build_only(found->plan());
      auto* const result = std::get_if<PlanResult>(&built);
      if (result == nullptr) return std::nullopt;
      model_.loaded.check_weights();
      auto record = std::move(*found).keep(*result);
      return NextPlan{std::move(*result), std::move(record)};
    }
    auto& search = std::get<PlanSearch>(*answer);
    PlanResult result = planner.build(&search);
    store.prices().add(planner.costs());
    model_.loaded.check_weights();
    auto record = std::move(search).keep(result, planner.costs());
    planner.keep_users_prices(result.tuning.seconds);
    return NextPlan{std::move(result), std::move(record)};
  }

  // Stores the parts of the plan that later processes load, and releases the weights that it
  // packed.
  NextPlan keep(Planner& planner, NextPlan next) {
    if (!options_.cache.frozen) {
      const bool is_stored = next.plan.is_known_plan || (next.record && next.record->is_saved());
      if (is_stored) planner.keep_stored(next.plan.built);
      model_.stored.keep_blobs();
    }
    model_.stored.note_record(next.record, nested_records(next.plan.built));
    model_.loaded.release_packed(next.plan.built);
    return next;
  }

  State& model_;
  const BindOptions& options_;
  CancellationToken& end_;
};

std::optional<NextPlan> Model::State::build_behind(const BindOptions& options,
                                                   const BackgroundBuild& wanted,
                                                   CancellationToken& end) {
  BackgroundBuilder builder(*this, options, end);
  if (wanted.measures) {
    std::optional<NextPlan> best = builder.measure(wanted.is_busy);
    return_freed_memory();
    if (best || !wanted.plan) return best;
  }
  return wanted.plan ? builder.swap_to(*wanted.plan) : builder.compile();
}

}  // namespace tessera
