#include "measure/tune_all.h"

#include <numeric>
#include <optional>
#include <utility>

#include "price/groups.h"

namespace tessera::tuning {

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

}  // namespace tessera::tuning
