#include "compile/known_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "assemble/plan_assembler.h"
#include "assemble/plan_constants.h"
#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "choose/placement_problem.h"
#include "measure/tune.h"
#include "place/explain_violation.h"
#include "place/placement.h"
#include "plan/memory_use.h"
#include "price/groups.h"
#include "price/stored_plans.h"

namespace tessera {
namespace {

// The candidates of `backend` for `threads` threads that the plan uses.
std::vector<WantedCandidate> wanted_of(const tuning::KnownPlan& plan, const std::string& backend,
                                       int threads) {
  std::vector<WantedCandidate> wanted;
  for (const tuning::PlannedStep& step : plan.steps) {
    if (step.backend != backend || step.threads != threads) continue;
    wanted.push_back({step.nodes, step.algorithm, step.layouts});
  }
  return wanted;
}

Offers collect(const tessera_graph& view, std::span<const std::shared_ptr<const Plugin>> plugins,
               const LayoutTable& layouts, ThreadPool& pool, const PlanOptions& options,
               const tuning::KnownPlan& plan) {
  Offers offers;
  for (size_t index = 0; index < plugins.size(); ++index) {
    const std::vector<WantedCandidate> wanted =
        wanted_of(plan, plugins[index]->name(), pool.threads());
    if (wanted.empty()) continue;
    Offers some;
    pool.execute([&] {
      some = collect_offers(view, plugins.subspan(index, 1), layouts,
                            {.threads = pool.threads(),
                             .precision = options.precision,
                             .nan = options.nan,
                             .accuracy = options.accuracy,
                             .wanted = &wanted});
    });
    for (Candidate& candidate : some.candidates) {
      candidate.preference = static_cast<int>(index);
      offers.candidates.push_back(std::move(candidate));
    }
  }
  return offers;
}

// In the order of collect_offers_by_threads().
Offers collect_by_threads(const tessera_graph& view,
                          std::span<const std::shared_ptr<const Plugin>> plugins,
                          const LayoutTable& layouts, ThreadPool& pool, const PlanOptions& options,
                          const tuning::KnownPlan& plan) {
  Offers offers = collect(view, plugins, layouts, pool, options, plan);
  if (pool.threads() == 1) return offers;
  ThreadPool one(1);
  Offers alone = collect(view, plugins, layouts, one, options, plan);
  for (Candidate& candidate : alone.candidates) {
    if (candidate.is_view()) continue;
    candidate.threads = 1;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

bool is_legal(const tuning::TuningTask& task, const Placement& placement) {
  return explain_violation(make_problem(task.graph, task.offers, task.layouts), placement).empty();
}

// Prices with which make_plan() uses exactly the conversions of `plan`.
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
  for (const tuning::PlannedStep& step : plan.steps) names.insert(step.backend);
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

std::string explain_wrong_kernel(const Graph& graph, const ops::Registry& registry,
                                 const std::vector<std::shared_ptr<const Plugin>>& plugins,
                                 ThreadPool& pool, const PlanOptions& options,
                                 const tuning::KnownPlan& plan, tuning::CostTable& costs) {
  const LayoutTable layouts(plugins, {}, allow_devices(options.selection.devices));
  const tessera_graph view(graph, registry);
  const Offers offers = collect_by_threads(view, plugins, layouts, pool, options, plan);
  const tuning::TuningTask task{.graph = graph,
                                .offers = offers,
                                .layouts = layouts,
                                .registry = registry,
                                .threads = pool.threads(),
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
  tuning::Tuner tuner(task, groups, keys, plugins, effort, costs);
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

std::optional<BuildOutcome> build_known_plan(const Graph& graph, const ops::Registry& registry,
                                             std::vector<std::shared_ptr<const Plugin>> plugins,
                                             PackStore& packs, ThreadPool& pool,
                                             const PlanOptions& options,
                                             const tuning::KnownPlan& plan,
                                             const StageWatcher& watcher) {
  // If a kernel reads a sparse value in a dense layout, the user is told why no kernel reads it
  // sparse. That needs the offers of all backends.
  if (!sparse_forms(graph).empty()) return std::nullopt;
  PlanResult result;
  BuiltPlan base;
  base.graph = graph;
  base.registry = &registry;
  base.plugins = std::move(plugins);
  base.layouts = std::make_shared<const LayoutTable>(base.plugins, std::span<const SparseForm>(),
                                                     allow_devices(options.selection.devices));
  // No step of the plan uses the device, so its plug-in was not opened; or the user is told that
  // there is none. Building anew does both.
  if (base.layouts->find_missing_io_device(graph) != nullptr) return std::nullopt;
  watcher("propose");
  {
    const tessera_graph view(base.graph, registry);
    base.offers = collect_by_threads(view, base.plugins, *base.layouts, pool, options, plan);
  }
  const tuning::TuningTask task{.graph = base.graph,
                                .offers = base.offers,
                                .layouts = *base.layouts,
                                .registry = registry,
                                .threads = pool.threads(),
                                .precision = options.precision,
                                .nan = options.nan,
                                .accuracy = options.accuracy};
  const std::optional<std::vector<int>> chosen = tuning::find_candidates(task, plan.steps);
  if (!chosen) return std::nullopt;
  const Placement placement{.chosen = *chosen};
  if (!is_legal(task, placement)) return std::nullopt;
  watcher("build");
  result.reused = tuning::make_reusable(task, *chosen);
  const KernelsInUse in_use(options.siblings);
  const StoredKernels stored(registry, pool.threads(),
                             {options.precision, options.nan, options.accuracy},
                             options.find_stored_kernel, options.shared_kernels);
  PlanAssembler assembler(pool, packs, in_use, stored);
  const auto before_each_kernel = [&](size_t, size_t) {
    if (options.check_wanted) options.check_wanted();
  };
  const AssembledKernels kernels = assembler.build(placement, base, before_each_kernel);
  if (!kernels.failed.empty()) return std::nullopt;
  if (kernels.released_weight) return *kernels.released_weight;
  watcher("plan");
  if (options.returns_step_outputs) {
    result.step_outputs = values_between_steps(base.offers, placement);
  }
  const std::vector<std::vector<double>> prices =
      conversion_prices(plan, base.graph, *base.layouts);
  result.built = assembler.lay_out(std::move(base), placement, result.step_outputs, prices);
  const int64_t budget = options.memory_budget_bytes;
  const bool is_too_large =
      budget > 0 && memory_use(result.built.plan, result.built.offers).total_bytes() > budget;
  if (is_too_large) return std::nullopt;
  watcher("pack");
  if (auto released = assembler.pack(result.built)) return *std::move(released);
  result.pack_bytes = pack_bytes(result.built.plan);
  result.kernels = count_kernels(result.built);
  result.loaded_kernels = assembler.count_loaded(placement);
  result.plan = plan;
  result.is_known_plan = true;
  return result;
}

}  // namespace tessera
