// Finds and builds plans in the background of an executor's runs.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/model_state.h"
#include "api/plan_swap.h"
#include "api/stage_clock.h"
#include "assemble/release_weights.h"
#include "base/background_task.h"
#include "base/fork.h"
#include "base/parallel.h"
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

std::optional<NextPlan> Model::State::retune_in_background(const BindOptions& given,
                                                           CancellationToken& end,
                                                           const std::function<bool()>& is_busy) {
  lower_priority();
  BindOptions options = given;
  options.optimize = Optimize::Now;
  const std::shared_ptr<const void> may_store = backends.state_->blobs->permit_storing();
  options.on_progress = [&](const TuneProgress&) {
    give_way(end, is_busy);
    return !end.is_cancelled();
  };
  ThreadPool pool(options.threads);
  StageClock clock([](const auto&...) {});
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.find_stored_kernel = stored_kernel_finder();
  wanted.shared_kernels = &backends.state_->store.kernels();
  tuning::CostTable costs;
  wanted.pricing = pricing_options(options, costs);
  Store& store = backends.state_->store;
  wanted.pricing.shared = &store.prices();
  wanted.pricing.is_in_background = true;
  wanted.pricing.wants_startup_plan = true;
  std::optional<LookupResult> answer = wait_for_answer(
      [&] { return store.try_look_up(plan_request(options, {}, pool.threads()), log); }, end);
  if (!answer) return std::nullopt;
  std::optional<PlanResult> result;
  std::shared_ptr<const CacheRecord> record;
  // Another process may have measured and stored the plan meanwhile.
  if (auto* const stored = std::get_if<StoredPlan>(&*answer)) {
    result = build_known(options, wanted, stored->plan(), pool, clock);
    if (!result) return std::nullopt;
    check_weights();
    record = std::move(*stored).keep(*result);
  } else {
    auto& search = std::get<PlanSearch>(*answer);
    result = build_anew(options, wanted, &search, pool, clock);
    store.prices().add(costs);
    check_weights();
    record = std::move(search).keep(*result, costs);
    keep_users_prices(options, result->tuning.seconds, costs);
  }
  if (end.is_cancelled()) return std::nullopt;
  if (result->is_known_plan || record->is_saved()) {
    keep_stored(result->built, pool.threads(), wanted);
  }
  keep_blobs();
  const ForkSafeLock lock(mutex);
  newest_cache = record;
  release_packed_constants(loaded.graph, result->built);
  return NextPlan{*std::move(result), std::move(record)};
}

std::optional<NextPlan> Model::State::compile_in_background(const BindOptions& options,
                                                            CancellationToken& end) {
  const auto check_wanted = [&end](const auto&...) { require_wanted(end); };
  ThreadPool pool(options.threads);
  StageClock clock(check_wanted);
  std::shared_ptr<const void> may_store;
  if (!options.cache.frozen) may_store = backends.state_->blobs->permit_storing();
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.shared_kernels = &backends.state_->store.kernels();
  wanted.check_wanted = check_wanted;
  wanted.compiles = true;
  PlanResult result = build_anew(options, wanted, nullptr, pool, clock);
  check_weights();
  if (!options.cache.frozen) keep_blobs();
  const ForkSafeLock lock(mutex);
  release_packed_constants(loaded.graph, result.built);
  return NextPlan{.plan = std::move(result)};
}

std::optional<NextPlan> Model::State::build_in_background(const BindOptions& options,
                                                          const tuning::KnownPlan& plan,
                                                          CancellationToken& end) {
  const auto check_wanted = [&end](const auto&...) { require_wanted(end); };
  ThreadPool pool(options.threads);
  StageClock clock(check_wanted);
  std::shared_ptr<const void> may_store;
  if (!options.cache.frozen) may_store = backends.state_->blobs->permit_storing();
  PlanOptions wanted = plan_options(options, backends.state_->set);
  wanted.check_wanted = check_wanted;
  wanted.find_stored_kernel = stored_kernel_finder();
  wanted.shared_kernels = &backends.state_->store.kernels();
  std::optional<PlanResult> result = build_known(options, wanted, plan, pool, clock);
  check_weights();
  if (result) {
    if (!options.cache.frozen) {
      keep_stored(result->built, pool.threads(), wanted);
      keep_blobs();
    }
    const ForkSafeLock lock(mutex);
    release_packed_constants(loaded.graph, result->built);
  }
  if (!result) {
    throw Error(ErrorKind::Unsupported, "the faster plan",
                "one of its libraries no longer offers what it needs");
  }
  return NextPlan{.plan = *std::move(result)};
}

}  // namespace tessera
