// Makes plans for other shapes than those to which an executor was bound.

#include <mutex>
#include <set>
#include <utility>

#include "api/backends_state.h"
#include "api/bind_options.h"
#include "api/model_state.h"
#include "api/stage_clock.h"
#include "assemble/release_weights.h"
#include "base/fork.h"

namespace tessera {
namespace {

PricingOptions replan_pricing(const BindOptions& options, tuning::CostTable& costs,
                              const tuning::ReusedChoice& reused, tuning::SharedCosts& shared) {
  PricingOptions pricing = pricing_options(options, costs);
  pricing.measures = false;
  pricing.measures_all = false;
  pricing.margin_search_seconds = 0;
  pricing.reused = &reused;
  if (!options.cache.retune) pricing.shared = &shared;
  return pricing;
}

}  // namespace

PlanResult Model::State::replan(const BindOptions& options, const tuning::ReusedChoice* reused,
                                std::vector<const BuiltPlan*> siblings) {
  ThreadPool pool(options.threads);
  Backends::State& known = *backends.state_;
  const auto plugins = choose_plugins(known.set, options);
  PlanOptions wanted = plan_options(options, known.set);
  wanted.log = &log;
  wanted.shared_kernels = &known.store.kernels();
  wanted.siblings = std::move(siblings);
  tuning::CostTable costs;
  if (reused != nullptr) {
    wanted.pricing = replan_pricing(options, costs, *reused, known.store.prices());
    if (is_optimizing(options)) {
      known.store.fill(plan_request(options, {}, pool.threads()), log, costs, wanted.pricing);
    }
  }
  const auto build = [&] {
    return build_plan(bound_graph(options, pool), *registry, plugins, packs, pool, wanted,
                      [](const std::string&) {});
  };
  StageClock clock;
  PlanResult result = build_with_weights(build, clock);
  const ForkSafeLock lock(mutex);
  release_packed_constants(loaded.graph, result.built);
  return result;
}

void Model::State::drop_packs_of_shapes() {
  std::set<Digest> own;
  {
    const std::lock_guard lock(mutex);
    for (const Value& value : loaded.graph.values) {
      if (value.digest) own.insert(*value.digest);
    }
  }
  packs.drop_unused([&](const Digest& weight) { return own.contains(weight); });
}

}  // namespace tessera
