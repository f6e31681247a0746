#include "tune/prices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/processor.h"
#include "tune/bounds.h"

namespace tessera::tuning {
namespace {

// How far below its bound a kernel stays that nobody measured.
constexpr double kOverBound = 4;
constexpr double kLeastSeconds = 1e-6;
// To enter an arena of one thread and to come back; see src/base/parallel_test.cc.
constexpr double kSecondsToBeAlone = 5e-7;

// Less than this may be what threads take to start.
constexpr double kSecondsToStartThreads = 2e-5;
// What loosens the bound of a candidate like which several were measured, or only one.
constexpr double kSlackOfSeveral = 1.15;
constexpr double kSlackOfOne = 1.2;
constexpr int kSeveral = 3;
// And of one like which only others of another size were, or of another shape of kernel, or both.
constexpr double kSlackOfOtherSizes = 1.5;
constexpr double kSlackOfOtherKinds = 1.5;
constexpr double kSlackOfOthers = 2;
// Parts of a graph that a library compiles as one are all alike to it.
constexpr double kSlackOfRegions = 1.1;
// What a kernel takes at least, whatever it does; a view takes nothing.
constexpr double kLeastBoundSeconds = 2e-7;
// Work within this factor (as a power of two) is about as much.
constexpr double kSizeClassBits = 3;
constexpr int kAnySize = std::numeric_limits<int>::max();
// What a run in context can change of a time, on the whole.
constexpr double kLeastContextFactor = 0.6;
constexpr double kMostContextFactor = 2;

// How near to their bounds candidates came that are alike.
struct Efficiency {
  double best = 0;  // bound over time
  int count = 0;

  void add(double efficiency) {
    best = std::max(best, efficiency);
    ++count;
  }
};

std::string main_op(const Graph& group) {
  std::string all;
  for (const Node& node : group.nodes) {
    if (is_product(node.op)) return node.op;
    all += node.op + "+";
  }
  return all;
}

std::string family_of(const Subject& subject, const std::string& op, const Candidate& candidate,
                      int threads) {
  std::string family = candidate.backend() + " " + std::to_string(threads);
  // Groups cut for a library that takes whatever it gets are each a work of their own.
  if (candidate.is_measured_only()) return family;
  family += " " + candidate.algorithm + " " + op;
  for (const CandidateInput& port : candidate.inputs) {
    if (subject.graph[port.value].is_constant()) continue;
    family += " " + std::to_string(port.layout.index);
    break;
  }
  for (const CandidateOutput& port : candidate.outputs) {
    family += " " + std::to_string(port.layout.index);
  }
  return family;
}

class Pricer {
 public:
  Pricer(const Subject& subject, const std::vector<TuneGroup>& groups,
         const std::vector<std::optional<CostKey>>& keys, const CostTable& table,
         const PriceOptions& options)
      : subject_(subject),
        groups_(groups),
        keys_(keys),
        families_(candidate_families(subject, groups)),
        families_on_all_threads_(candidate_families(subject, groups, subject.threads)),
        table_(table),
        options_(options),
        weights_(weights_between_runs(subject.graph)),
        speed_(assumed_speed()),
        prices_(subject.offers.candidates.size()) {}

  std::vector<CandidatePrice> price_candidates() {
    for (const TuneGroup& group : groups_) look_up(group);
    context_factor_ = find_context_factor();
    for (const TuneGroup& group : groups_) learn(group);
    for (const TuneGroup& group : groups_) price(group);
    return std::move(prices_);
  }

  double context_factor() const { return context_factor_; }

 private:
  CandidatePrice& price_of(int candidate) { return prices_[static_cast<size_t>(candidate)]; }
  const Candidate& offered(int candidate) const {
    return subject_.offers.candidates[static_cast<size_t>(candidate)];
  }

  // Alone on its buffers; the other one where the group has no weights, or was measured for another
  // model.
  const Timing* isolated(const Cost& cost) const {
    const auto& wanted = weights_ == Weights::Cold ? cost.cold : cost.warm;
    const auto& other = weights_ == Weights::Cold ? cost.warm : cost.cold;
    if (wanted) return &*wanted;
    return other ? &*other : nullptr;
  }

  bool is_alone(const Candidate& candidate) const {
    return candidate.threads == 1 && subject_.threads > 1;
  }

  int threads_of(const Candidate& candidate) const {
    return candidate.threads == 0 ? subject_.threads : candidate.threads;
  }

  void look_up(const TuneGroup& group) {
    for (const int index : group.candidates) {
      const std::optional<CostKey>& key = keys_[static_cast<size_t>(index)];
      if (!key) continue;
      const auto found = table_.kernels.find(*key);
      if (found == table_.kernels.end()) continue;
      CandidatePrice& price = price_of(index);
      price.cost = &found->second;
      if (price.is_refused()) continue;
      const auto& in_context = found->second.in_context;
      price.timing = in_context ? &*in_context : isolated(found->second);
    }
  }

  double find_context_factor() const {
    double alone = 0;
    double together = 0;
    for (const CandidatePrice& price : prices_) {
      if (price.timing == nullptr || !price.cost->in_context) continue;
      const Timing* timing = isolated(*price.cost);
      if (timing == nullptr) continue;
      alone += timing->seconds;
      together += price.timing->seconds;
    }
    if (!(alone > 0)) return 1;
    return std::clamp(together / alone, kLeastContextFactor, kMostContextFactor);
  }

  double bound(const TuneGroup& group, const Candidate& candidate) const {
    const double seconds = bound_seconds(group.graph, subject_.registry, speed_,
                                         threads_of(candidate), subject_.precision);
    return std::max(seconds, kLeastBoundSeconds);
  }

  // Of candidates that come about as near to their bounds, whatever their size.
  std::string kind_of(const TuneGroup& group, int candidate) const {
    // The types come first in the text; sizes are told apart by the bound.
    return families_[static_cast<size_t>(candidate)] +
           (group.text ? group.text->text.substr(group.text->text.find(": ")) : "");
  }

  static int size_class(double bound_seconds) {
    return static_cast<int>(std::floor(std::log2(bound_seconds) / kSizeClassBits));
  }

  void learn(const TuneGroup& group) {
    for (const int index : group.candidates) {
      const CandidatePrice& price = price_of(index);
      if (price.timing == nullptr || !offered(index).has_kernel()) continue;
      const double bound_of_it = bound(group, offered(index));
      const double efficiency = bound_of_it / std::max(price.timing->seconds, bound_of_it);
      const std::string kind = kind_of(group, index);
      const std::string& family = families_[static_cast<size_t>(index)];
      const int size = size_class(bound_of_it);
      for (const std::string& name : {kind, family}) {
        known_[{name, size}].add(efficiency);
        known_[{name, kAnySize}].add(efficiency);
      }
    }
  }

  double loosened_bound(const TuneGroup& group, int index) const {
    const Candidate& candidate = offered(index);
    if (!candidate.has_kernel()) return 0;
    const double least = bound(group, candidate);
    const auto by = [&](const std::string& name, int size, double slack) {
      const auto found = known_.find({name, size});
      if (found == known_.end()) return 0.0;
      const bool are_several = slack == kSlackOfOne && found->second.count >= kSeveral;
      return least / (found->second.best * (are_several ? kSlackOfSeveral : slack));
    };
    const std::string& family = families_[static_cast<size_t>(index)];
    if (candidate.is_measured_only()) {
      return std::max(least, by(family, kAnySize, kSlackOfRegions));
    }
    const std::string kind = kind_of(group, index);
    const int size = size_class(least);
    // The nearest of its like counts.
    for (const double bound :
         {by(kind, size, kSlackOfOne), by(kind, kAnySize, kSlackOfOtherSizes),
          by(family, size, kSlackOfOtherKinds), by(family, kAnySize, kSlackOfOthers)}) {
      if (bound > 0) return std::max(least, bound);
    }
    if (!is_alone(candidate)) return least;
    // One thread is not faster than all of them, but for what these take to start.
    const std::string& on_all = families_on_all_threads_[static_cast<size_t>(index)];
    const double bound = std::max(by(on_all, size_class(least / subject_.threads), kSlackOfOne),
                                  by(on_all, kAnySize, kSlackOfOthers)) /
                         subject_.threads;
    const bool is_short = bound < kSecondsToStartThreads;
    return is_short ? least : std::max(least, bound);
  }

  // No less than its bound, so that what was not measured, as it could not win, does not.
  double guess(const TuneGroup& group, int index, double dearest) const {
    const Candidate& candidate = offered(index);
    if (!candidate.has_kernel()) return 0;
    const double least = context_factor_ * loosened_bound(group, index);
    if (dearest > 0) return std::max(2 * dearest, least);
    return std::max(
        {kOverBound * bound(group, candidate), candidate.optimistic_seconds, kLeastSeconds, least});
  }

  double seconds_of(const CandidatePrice& price) const {
    return price.timing->seconds * (price.cost->in_context ? 1 : context_factor_);
  }

  bool is_guessed(int candidate) const {
    return options_.unmeasured == Unmeasured::Guessed ||
           (!options_.is_guessed.empty() && options_.is_guessed[static_cast<size_t>(candidate)]);
  }

  void price(const TuneGroup& group) {
    double dearest = 0;
    for (const int index : group.candidates) {
      CandidatePrice& price = price_of(index);
      if (price.timing == nullptr) continue;
      price.seconds = seconds_of(price);
      dearest = std::max(dearest, price.seconds);
    }
    for (const int index : group.candidates) {
      CandidatePrice& price = price_of(index);
      if (price.timing == nullptr) {
        price.seconds = is_guessed(index) ? guess(group, index, dearest)
                                          : context_factor_ * loosened_bound(group, index);
      }
      if (is_alone(offered(index))) price.seconds += kSecondsToBeAlone;
    }
  }

  const Subject& subject_;
  const std::vector<TuneGroup>& groups_;
  const std::vector<std::optional<CostKey>>& keys_;
  std::vector<std::string> families_;  // by candidate
  std::vector<std::string> families_on_all_threads_;
  const CostTable& table_;
  const PriceOptions& options_;
  Weights weights_;
  ProcessorSpeed speed_;
  std::vector<CandidatePrice> prices_;
  double context_factor_ = 1;
  std::map<std::pair<std::string, int>, Efficiency> known_;  // by kind or family, and size
};

double conversion_seconds(const Subject& subject, const CostTable& table, LayoutId from,
                          LayoutId to, const TensorType& type, const PriceOptions& options) {
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
      const bool is_bound =
          options.unmeasured == Unmeasured::Bounded && found == table.conversions.end();
      seconds += options.conversion_seconds(bytes) / (is_bound ? kOverBound : 1);
    } else {
      const auto measured = static_cast<double>(std::max<int64_t>(found->second.bytes, 1));
      seconds += found->second.timing.seconds * static_cast<double>(bytes) / measured;
    }
  }
  return seconds;
}

}  // namespace

std::vector<std::string> candidate_families(const Subject& subject,
                                            const std::vector<TuneGroup>& groups,
                                            std::optional<int> threads) {
  std::vector<std::string> families(subject.offers.candidates.size());
  for (const TuneGroup& group : groups) {
    const std::string op = main_op(group.graph);
    for (const int index : group.candidates) {
      const auto position = static_cast<size_t>(index);
      const Candidate& candidate = subject.offers.candidates[position];
      const int own_threads = candidate.threads == 0 ? subject.threads : candidate.threads;
      families[position] = family_of(subject, op, candidate, threads.value_or(own_threads));
    }
  }
  return families;
}

Prices look_up_prices(const Subject& subject, const std::vector<TuneGroup>& groups,
                      const std::vector<std::optional<CostKey>>& keys, const CostTable& table,
                      const PriceOptions& options) {
  Prices prices;
  Pricer pricer(subject, groups, keys, table, options);
  prices.candidates = pricer.price_candidates();
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
            pricer.context_factor() * conversion_seconds(subject, table, from, to, *type, options);
      }
    }
  }
  return prices;
}

}  // namespace tessera::tuning
