#include "compile/wanted_offers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "backend/graph_view.h"
#include "base/machine/processor.h"
#include "ops/work.h"
#include "price/bounds.h"

namespace tessera {
namespace {

double seconds_to_write(const Graph& graph, const Node& node, const ProcessorSpeed& speed) {
  double bytes = 0;
  for (const ValueId id : node.outputs) {
    if (!id.is_none()) bytes += static_cast<double>(type_bytes(graph[id].type).value_or(0));
  }
  return bytes / speed.bytes_per_second;
}

// Estimated by work and memory traffic, before plug-ins are asked.
bool is_tiny(const Graph& graph, const ops::Registry& registry, const PlanOptions& options) {
  const ProcessorSpeed speed = assumed_speed();
  double seconds = tuning::bound_seconds(graph, registry, speed, 1, options.precision,
                                         options.pricing.price_tuning);
  for (const Node& node : graph.nodes) seconds += seconds_to_write(graph, node, speed);
  const CompileTuning& tuning = options.compile_tuning;
  return tuning.seconds_over_bound * seconds < tuning.tiny_graph_seconds;
}

// Whether every node takes less than `min_seconds`.
bool is_for_one_thread(const Graph& graph, const ops::Registry& registry, double min_seconds,
                       const CompileTuning& tuning) {
  const ProcessorSpeed speed = assumed_speed();
  return std::ranges::all_of(graph.nodes, [&](const Node& node) {
    const std::optional<int64_t> flops = ops::node_flops(graph, node, registry);
    if (!flops || !node.bodies.empty()) return false;
    const double seconds =
        static_cast<double>(*flops) / speed.flops_per_second + seconds_to_write(graph, node, speed);
    return tuning.seconds_over_bound * seconds < min_seconds;
  });
}

// Whether some node has candidates only of the last plug-in.
bool needs_reference(const Graph& graph, const Offers& offers, size_t plugin_count) {
  std::vector<bool> has_other(graph.nodes.size(), false);
  for (const Candidate& candidate : offers.candidates) {
    if (static_cast<size_t>(candidate.preference) + 1 == plugin_count) continue;
    for (const NodeId node : candidate.nodes) has_other[static_cast<size_t>(node.index)] = true;
  }
  return std::find(has_other.begin(), has_other.end(), false) != has_other.end();
}

}  // namespace

Offers collect_wanted_offers(const Graph& graph, const LayoutTable& layouts,
                             const PlanOptions& options, const BuildServices& services) {
  const ops::Registry& registry = services.registry;
  const std::span<const std::shared_ptr<const Plugin>> plugins = services.plugins;
  ThreadPool& pool = services.pool;
  const tessera_graph view(graph, registry, options.fuses);
  const PricingOptions& pricing = options.pricing;
  const CompileTuning& tuning = options.compile_tuning;
  const bool are_pinned = !options.selection.pins.empty();
  // With a reused choice, candidates for one thread, or that need a measured price, are requested
  // only if the choice uses some.
  const tuning::ReusedChoice* const reused = pricing.known_plan ? nullptr : pricing.reused;
  const auto offered = [&](bool skips_measured_only) {
    return OfferOptions{.precision = options.precision,
                        .nan = options.nan,
                        .accuracy = options.accuracy,
                        .skips_measured_only = skips_measured_only,
                        .takes_sizes = options.takes_sizes};
  };
  const bool is_for_all_threads =
      pricing.costs == nullptr || (reused != nullptr && !reused->has_single_threaded);
  const bool may_skip_regions =
      pricing.costs == nullptr || (reused != nullptr && !reused->has_measured_only);
  const auto is_for_one = [&](double min_seconds) {
    return pool.threads() > 1 && is_for_one_thread(graph, registry, min_seconds, tuning);
  };
  if (is_for_all_threads) {
    const OfferOptions all = offered(may_skip_regions && !are_pinned);
    // No price tells that waking threads takes longer than the work itself.
    const bool is_unpriced = pricing.costs == nullptr;
    if (is_unpriced && is_for_one(tuning.min_shared_seconds_unpriced)) {
      return collect_offers_for_one_thread(view, plugins, layouts, all);
    }
    return collect_offers_for_all_threads(view, plugins, layouts, pool, all);
  }
  const auto collect = [&](bool skips_measured_only) {
    return collect_offers_by_threads(view, plugins, layouts, pool, offered(skips_measured_only));
  };
  if (reused != nullptr) return collect(may_skip_regions && !are_pinned);
  const bool has_time = pricing.measures_all || pricing.tune.budget_seconds > 0;
  const bool knows_plan = pricing.known_plan || !pricing.costs->plans.empty();
  if (!pricing.measures || are_pinned || has_time || knows_plan) return collect(false);
  if (!is_tiny(graph, registry, options)) return collect(false);
  Offers offers = is_for_one(tuning.min_shared_seconds_priced)
                      ? collect_offers_for_one_thread(view, plugins, layouts, offered(true))
                      : collect(true);
  if (needs_reference(graph, offers, plugins.size())) return collect(false);
  return offers;
}

}  // namespace tessera
