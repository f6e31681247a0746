#include "measure/check_offers.h"

#include "backend/graph_view.h"
#include "choose/price_offers.h"
#include "measure/tune_all.h"
#include "price/cost_table.h"

namespace tessera {

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
