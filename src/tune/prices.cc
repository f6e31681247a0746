#include "tune/prices.h"

#include <algorithm>
#include <limits>

#include "base/processor.h"
#include "tune/bounds.h"

namespace tessera::tuning {
namespace {

// How far below its bound a kernel stays that nobody measured.
constexpr double kOverBound = 4;
constexpr double kLeastSeconds = 1e-6;
// To enter an arena of one thread and to come back; see src/base/parallel_test.cc.
constexpr double kSecondsToBeAlone = 5e-7;

class Pricer {
 public:
  Pricer(const Subject& subject, const CostTable& table)
      : subject_(subject),
        table_(table),
        weights_(weights_between_runs(subject.graph)),
        speed_(assumed_speed()) {}

  std::vector<CandidatePrice> price_candidates(const std::vector<TuneGroup>& groups,
                                               const std::vector<std::optional<CostKey>>& keys) {
    std::vector<CandidatePrice> prices(subject_.offers.candidates.size());
    for (const TuneGroup& group : groups) price_group(group, keys, prices);
    return prices;
  }

 private:
  const Timing* timing_of(const Cost& cost) const {
    if (cost.in_context) return &*cost.in_context;
    const auto& wanted = weights_ == Weights::Cold ? cost.cold : cost.warm;
    const auto& other = weights_ == Weights::Cold ? cost.warm : cost.cold;
    // The other one where the group has no weights, or was measured for another model.
    if (wanted) return &*wanted;
    return other ? &*other : nullptr;
  }

  bool is_alone(const Candidate& candidate) const {
    return candidate.threads == 1 && subject_.threads > 1;
  }

  void price_group(const TuneGroup& group, const std::vector<std::optional<CostKey>>& keys,
                   std::vector<CandidatePrice>& prices) const {
    double dearest = 0;
    for (const int index : group.candidates) {
      const auto position = static_cast<size_t>(index);
      if (!keys[position]) continue;
      const auto found = table_.kernels.find(*keys[position]);
      if (found == table_.kernels.end()) continue;
      CandidatePrice& price = prices[position];
      price.cost = &found->second;
      price.timing = price.is_refused() ? nullptr : timing_of(found->second);
      if (price.timing == nullptr) continue;
      price.seconds = price.timing->seconds;
      dearest = std::max(dearest, price.seconds);
    }
    for (const int index : group.candidates) {
      CandidatePrice& price = prices[static_cast<size_t>(index)];
      const Candidate& candidate = subject_.offers.candidates[static_cast<size_t>(index)];
      if (price.timing == nullptr) price.seconds = guess(group, candidate, dearest);
      if (is_alone(candidate)) price.seconds += kSecondsToBeAlone;
    }
  }

  double guess(const TuneGroup& group, const Candidate& candidate, double dearest) const {
    if ((candidate.flags & TESSERA_CANDIDATE_VIEW) != 0) return 0;
    if (dearest > 0) return 2 * dearest;
    const int threads = candidate.threads == 0 ? subject_.threads : candidate.threads;
    const double bound =
        bound_seconds(group.graph, subject_.registry, speed_, threads, subject_.precision);
    return std::max({kOverBound * bound, candidate.optimistic_seconds, kLeastSeconds});
  }

  const Subject& subject_;
  const CostTable& table_;
  Weights weights_;
  ProcessorSpeed speed_;
};

double conversion_seconds(const Subject& subject, const CostTable& table, LayoutId from,
                          LayoutId to, const TensorType& type,
                          double (*unmeasured)(int64_t bytes)) {
  const int64_t bytes = tensor_bytes(type.element, type.dims);
  double seconds = 0;
  for (const ConversionStep& step : subject.layouts.route(from, to, type)) {
    const auto found = table.conversions.find({.backend = step.plugin->name(),
                                               .ingredients = step.plugin->ingredients(),
                                               .from = subject.layouts.name(step.from),
                                               .to = subject.layouts.name(step.to),
                                               .element = type.element,
                                               .size_class = size_class_of(bytes),
                                               .threads = subject.threads});
    if (found == table.conversions.end() || !found->second.refusal.empty()) {
      seconds += unmeasured(bytes);
    } else {
      const auto measured = static_cast<double>(std::max<int64_t>(found->second.bytes, 1));
      seconds += found->second.timing.seconds * static_cast<double>(bytes) / measured;
    }
  }
  return seconds;
}

}  // namespace

Prices look_up_prices(const Subject& subject, const std::vector<TuneGroup>& groups,
                      const std::vector<std::optional<CostKey>>& keys, const CostTable& table,
                      double (*unmeasured)(int64_t bytes)) {
  Prices prices;
  prices.candidates = Pricer(subject, table).price_candidates(groups, keys);
  const std::vector<ValueLayouts> layouts = value_layouts(subject);
  const size_t count = subject.layouts.size();
  for (size_t index = 0; index < layouts.size(); ++index) {
    std::vector<double>& row = prices.conversions.emplace_back();
    const std::optional<TensorType> type = known_type(subject.graph.values[index].type);
    const bool is_converted = layouts[index].made.size() + layouts[index].read.size() > 0;
    if (!type || !is_converted || subject.graph.values[index].is_constant()) continue;
    // Any layout in which it is made or read may be one that it is converted from, and through the
    // default one may be cheaper than a direct way.
    std::vector<LayoutId> all = {kDefaultLayout};
    for (const auto* some : {&layouts[index].made, &layouts[index].read}) {
      for (const LayoutId id : *some) {
        if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
      }
    }
    // No way leads through the others: they may not hold the value at all.
    row.assign(count * count, std::numeric_limits<double>::infinity());
    for (size_t layout = 0; layout < count; ++layout) row[layout * count + layout] = 0;
    for (const LayoutId from : all) {
      for (const LayoutId to : all) {
        row[static_cast<size_t>(from.index) * count + static_cast<size_t>(to.index)] =
            conversion_seconds(subject, table, from, to, *type, unmeasured);
      }
    }
  }
  return prices;
}

}  // namespace tessera::tuning
