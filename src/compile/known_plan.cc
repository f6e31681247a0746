#include "compile/known_plan.h"

#include <limits>
#include <set>
#include <utility>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "measure/tune.h"
#include "price/groups.h"
#include "price/stored_plans.h"

namespace tessera {
namespace {

Offers collect(const tessera_graph& view, const LayoutTable& layouts, ThreadPool& pool,
               const PlanOptions& options, const BuildServices& services,
               const tuning::KnownPlan& plan) {
  Offers offers;
  pool.execute([&] {
    offers = collect_offers(view, services.plugins, layouts,
                            {.threads = pool.threads(),
                             .precision = options.precision,
                             .nan = options.nan,
                             .accuracy = options.accuracy,
                             .wanted = &plan.steps});
  });
  return offers;
}

// The backend that defines `layout`; "" if none of `plugins` does, as for layouts of the host.
std::string backend_defining_layout(const std::string& layout,
                                    const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  for (const std::shared_ptr<const Plugin>& plugin : plugins) {
    const tessera_backend& abi = plugin->abi();
    for (const tessera_layout& layout_abi :
         std::span(abi.layouts, static_cast<size_t>(abi.layout_count))) {
      if (layout == layout_abi.name) return plugin->name();
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> backends_of(const tuning::KnownPlan& plan) {
  std::set<std::string> names(plan.layout_backends.begin(), plan.layout_backends.end());
  for (const CandidateId& step : plan.steps) names.insert(step.backend);
  return {names.begin(), names.end()};
}

void note_layout(const BuiltPlan& built, tuning::KnownPlan& plan) {
  plan.conversions.clear();
  std::set<std::string> layout_backends;
  for (const PlanBuffer& buffer : built.plan.buffers) {
    layout_backends.insert(
        buffer.device == kHostDevice
            ? backend_defining_layout(built.layouts->name(buffer.layout), built.plugins)
            : built.layouts->device(buffer.device).plugin().name());
  }
  for (const ExecutionStep& step : built.plan.steps) {
    if (step.kind != ExecutionStep::Kind::Convert) continue;
    const ConversionStep& conversion = step.conversion;
    const auto buffer = static_cast<size_t>(step.inputs.front());
    plan.conversions.push_back({.value = built.plan.buffers[buffer].value.index,
                                .from = built.layouts->name(conversion.from),
                                .to = built.layouts->name(conversion.to)});
    if (conversion.plugin != nullptr) layout_backends.insert(conversion.plugin->name());
  }
  layout_backends.erase("");
  plan.layout_backends.assign(layout_backends.begin(), layout_backends.end());
}

Offers collect_known_offers(const Graph& graph, const LayoutTable& layouts,
                            const PlanOptions& options, const BuildServices& services,
                            const tuning::KnownPlan& plan) {
  const tessera_graph view(graph, services.registry);
  Offers offers = collect(view, layouts, services.pool, options, services, plan);
  if (services.pool.threads() == 1) return offers;
  ThreadPool one(1);
  Offers alone = collect(view, layouts, one, options, services, plan);
  for (Candidate& candidate : alone.candidates) {
    if (candidate.is_view()) continue;
    candidate.threads = 1;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

std::vector<std::vector<double>> conversion_prices(const tuning::KnownPlan& plan,
                                                   const Graph& graph, const LayoutTable& layouts) {
  std::vector<std::vector<double>> prices(graph.values.size());
  const size_t count = layouts.size();
  for (const tuning::PlannedConversion& step : plan.conversions) {
    const std::optional<LayoutId> from = layouts.find(step.from);
    const std::optional<LayoutId> to = layouts.find(step.to);
    if (!from || !to || static_cast<size_t>(step.value) >= prices.size()) continue;
    std::vector<double>& row = prices[static_cast<size_t>(step.value)];
    if (row.empty()) {
      row.assign(count * count, std::numeric_limits<double>::infinity());
      for (size_t layout = 0; layout < count; ++layout) row[layout * count + layout] = 0;
    }
    row[static_cast<size_t>(from->index) * count + static_cast<size_t>(to->index)] = 1;
  }
  return prices;
}

std::string explain_wrong_kernel(const Graph& graph, const PlanOptions& options,
                                 const BuildServices& services, const tuning::KnownPlan& plan,
                                 tuning::CostTable& costs) {
  const LayoutTable layouts(services.plugins, {}, allow_devices(options.selection.devices));
  const Offers offers = collect_known_offers(graph, layouts, options, services, plan);
  const tuning::TuningTask task{.graph = graph,
                                .offers = offers,
                                .layouts = layouts,
                                .registry = services.registry,
                                .threads = services.pool.threads(),
                                .precision = options.precision,
                                .nan = options.nan,
                                .accuracy = options.accuracy};
  const std::optional<std::vector<int>> chosen = tuning::find_candidates(task, plan.steps);
  if (!chosen) return tuning::explain_missing(task, plan.steps);
  const std::vector<tuning::TuneGroup> groups = tuning::collect_groups(task);
  const std::vector<std::optional<tuning::CostKey>> keys = tuning::cost_keys(task, groups);
  if (options.pricing.shared != nullptr) options.pricing.shared->look_up(keys, {}, costs);
  tuning::TuneOptions effort = options.pricing.tune;
  effort.only_checks = true;
  effort.budget_seconds = 0;
  tuning::Tuner tuner(task, groups, keys, services.plugins, effort, costs);
  tuner.measure(*chosen, {});
  for (const int index : *chosen) {
    const Candidate& candidate = offers.candidates[static_cast<size_t>(index)];
    const std::optional<tuning::CostKey>& key = keys[static_cast<size_t>(index)];
    // Views run nothing, and candidates without a key are never checked alone.
    if (!candidate.has_kernel() || !key) continue;
    const std::string name = candidate.backend() + ":" + candidate.algorithm + " for " +
                             location_of(graph[candidate.nodes.front()]);
    const auto found = costs.kernels.find(*key);
    if (found == costs.kernels.end() || !found->second.is_verified_here) {
      return name + " could not be compared with the reference";
    }
    if (!found->second.refusal.empty()) return name + " is refused: " + found->second.refusal;
  }
  return {};
}

}  // namespace tessera
