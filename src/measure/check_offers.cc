#include "measure/check_offers.h"

#include <numeric>
#include <optional>
#include <utility>

#include "backend/graph_view.h"
#include "choose/price_offers.h"
#include "price/cost_table.h"
#include "price/groups.h"

namespace tessera {

namespace tuning {

TuneReport tune(const TuningTask& task, std::vector<std::shared_ptr<const Plugin>> plugins,
                const TuneOptions& options, CostTable& table) {
  const std::vector<TuneGroup> groups = collect_groups(task);
  const std::vector<std::optional<CostKey>> keys = cost_keys(task, groups);
  Tuner tuner(task, groups, keys, std::move(plugins), options, table);
  std::vector<int> all(task.offers.candidates.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<NeededConversion> conversions =
      options.only_checks ? std::vector<NeededConversion>{} : needed_conversions(task);
  tuner.measure(all, conversions);
  return tuner.report();
}

}  // namespace tuning

CheckedOffers check_offers(const Graph& graph, const ops::Registry& registry,
                           const std::vector<std::shared_ptr<const Plugin>>& plugins,
                           ThreadPool& pool, const OfferOptions& offered,
                           const OfferSelection& selection, tuning::TuneOptions options) {
  check_selected_names(selection, registry, plugins);
  const LayoutTable layouts(plugins, sparse_forms(graph), allow_devices(selection.devices));
  layouts.check_io_devices(graph);
  const tessera_graph view(graph, registry);
  const Offers offers = select_offers(
      collect_offers_by_threads(view, plugins, layouts, pool, offered), graph, selection);
  const tuning::TuningTask task{.graph = graph,
                                .offers = offers,
                                .layouts = layouts,
                                .registry = registry,
                                .threads = pool.threads(),
                                .precision = offered.precision,
                                .nan = offered.nan,
                                .accuracy = offered.accuracy};
  options.only_checks = true;
  tuning::CostTable table;
  CheckedOffers checked;
  checked.tuning = tuning::describe(tuning::tune(task, plugins, options, table));
  PricedOffers prices(task, table, 0);
  prices.look_up_guesses();
  checked.candidates = prices.describe(Placement{}, {});
  return checked;
}

}  // namespace tessera
