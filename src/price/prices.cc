#include "price/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/machine/processor.h"
#include "price/bounds.h"

namespace tessera::tuning {
namespace {

// Stands for all size classes of work.
constexpr int kAnySize = std::numeric_limits<int>::max();

// Elementwise ops that take about an instruction for each element.
constexpr std::array<std::string_view, 7> kShortOps = {"Add", "Clip", "Max", "Min",
                                                       "Mul", "Relu", "Sum"};

// The ratio of bounds to times of similar candidates.
struct Efficiency {
  double best = 0;  // bound over time
  int count = 0;

  void add(double efficiency) {
    best = std::max(best, efficiency);
    ++count;
  }
};

// The seconds of kernels, timed alone and in a plan.
struct Context {
  double alone = 0;
  double together = 0;

  void add(double seconds_alone, double seconds_together) {
    alone += seconds_alone;
    together += seconds_together;
  }
  double factor(const PriceTuning& tuning) const {
    if (!(alone > 0)) return 1;
    return std::clamp(together / alone, tuning.min_context_factor, tuning.max_context_factor);
  }
};

std::string main_op(const Graph& group, const ops::Registry& registry) {
  std::string all;
  for (const Node& node : group.nodes) {
    if (registry.has_trait(node, ops::kProduct)) return node.op;
    all += node.op + "+";
  }
  return all;
}

std::string family_of(const TuningTask& task, const std::string& op, const Candidate& candidate,
                      int threads) {
  std::string family = candidate.backend() + " " + std::to_string(threads);
  // Every region has ops of its own, so regions of a backend form one family.
  if (candidate.is_measured_only()) return family;
  family += " " + candidate.algorithm + " " + op;
  for (const CandidateInput& port : candidate.inputs) {
    if (task.graph[port.value].is_constant()) continue;
    family += " " + std::to_string(port.layout.index);
    break;
  }
  for (const CandidateOutput& port : candidate.outputs) {
    family += " " + std::to_string(port.layout.index);
  }
  return family;
}

// Assigns numbers to texts; equal texts get the same number.
class Numbers {
 public:
  int of(const std::string& text) {
    return numbers_.emplace(text, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int> numbers_;
};

// Identifies candidates that differ only in the dense layout.
struct DenseKey {
  const std::vector<NodeId>* nodes = nullptr;
  int preference = 0;
  std::string_view algorithm;
  int threads = 0;
  bool operator<(const DenseKey& other) const {
    return std::tie(*nodes, preference, algorithm, threads) <
           std::tie(*other.nodes, other.preference, other.algorithm, other.threads);
  }
};

class Pricer {
 public:
  Pricer(const TuningTask& task, const std::vector<TuneGroup>& groups, const PriceBasis& basis,
         const std::vector<std::optional<CostKey>>& keys, const CostTable& table,
         const PriceOptions& options)
      : task_(task),
        tuning_(task.tuning),
        groups_(groups),
        basis_(basis),
        keys_(keys),
        table_(table),
        options_(options),
        prices_(task.offers.candidates.size()),
        estimates_(task.offers.candidates.size(), 1) {}

  std::vector<CandidatePrice> price_candidates() {
    for (const TuneGroup& group : groups_) look_up(group);
    for (const TuneGroup& group : groups_) compare_estimates(group);
    find_context_factors();
    for (const TuneGroup& group : groups_) learn(group);
    for (const TuneGroup& group : groups_) price(group);
    return std::move(prices_);
  }

  // The factor of all kernels.
  double context_factor() const { return all_contexts_.factor(tuning_); }

 private:
  CandidatePrice& price_of(int candidate) { return prices_[static_cast<size_t>(candidate)]; }
  const Candidate& offered(int candidate) const {
    return task_.offers.candidates[static_cast<size_t>(candidate)];
  }

  // The isolated time for this graph's kind of weights; the other one if the group has no weights
  // or was measured for another model.
  const Timing* isolated(const Cost& cost) const {
    const bool are_cold = basis_.weights == Weights::Cold;
    const auto& wanted = are_cold ? cost.cold : cost.warm;
    const auto& other = are_cold ? cost.warm : cost.cold;
    if (wanted) return &*wanted;
    return other ? &*other : nullptr;
  }

  bool is_single_threaded(const Candidate& candidate) const {
    return candidate.threads == 1 && task_.threads > 1;
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

  // For each candidate: the time that its backend expects, relative to the backend's fastest
  // candidate for the same nodes. A backend knows how many operations its algorithms need.
  void compare_estimates(const TuneGroup& group) {
    std::map<std::string_view, double> least;  // by backend
    for (const int index : group.candidates) {
      const Candidate& candidate = offered(index);
      if (!(candidate.optimistic_seconds > 0)) continue;
      double& seconds = least[candidate.backend()];
      if (seconds == 0 || candidate.optimistic_seconds < seconds) {
        seconds = candidate.optimistic_seconds;
      }
    }
    for (const int index : group.candidates) {
      const Candidate& candidate = offered(index);
      if (!(candidate.optimistic_seconds > 0)) continue;
      estimates_[static_cast<size_t>(index)] = std::min(
          candidate.optimistic_seconds / least[candidate.backend()], tuning_.max_estimate_ratio);
    }
  }

  // Sums the times of kernels that were timed both alone and in context: of each family, and of all
  // kernels that are not regions.
  void find_context_factors() {
    for (size_t index = 0; index < prices_.size(); ++index) {
      const CandidatePrice& price = prices_[index];
      if (price.timing == nullptr || !price.cost->in_context) continue;
      const Timing* timing = isolated(*price.cost);
      if (timing == nullptr) continue;
      const int candidate = static_cast<int>(index);
      contexts_[kind(candidate).family].add(timing->seconds, price.timing->seconds);
      if (offered(candidate).is_measured_only()) continue;
      all_contexts_.add(timing->seconds, price.timing->seconds);
    }
  }

  // The expected ratio of the time in context to the isolated time: the ratio of its family, or, if
  // little of that is known, of all kernels. A region is so large that the steps before it hardly
  // matter.
  double context_factor(int candidate) const {
    const auto found = contexts_.find(kind(candidate).family);
    if (offered(candidate).is_measured_only()) {
      return found == contexts_.end() ? 1 : found->second.factor(tuning_);
    }
    Context context = found == contexts_.end() ? Context{} : found->second;
    const double doubt = tuning_.doubt_share * all_contexts_.alone;
    context.add(doubt, doubt * all_contexts_.factor(tuning_));
    return context.factor(tuning_);
  }

  const CandidateKind& kind(int candidate) const {
    return basis_.kinds[static_cast<size_t>(candidate)];
  }
  double bound(int candidate) const { return kind(candidate).bound_seconds; }

  int size_class(double bound_seconds) const {
    return static_cast<int>(std::floor(std::log2(bound_seconds) / tuning_.size_class_bits));
  }

  void learn(const TuneGroup& group) {
    for (const int index : group.candidates) {
      const CandidatePrice& price = price_of(index);
      if (price.timing == nullptr || !offered(index).has_kernel()) continue;
      if (offered(index).is_any_dense) {
        double& least = dense_[dense_key(index)];
        if (least == 0 || price.timing->seconds < least) least = price.timing->seconds;
      }
      if (kind(index).is_mostly_product) {
        double& least = products_[{kind(index).family, kind(index).product}];
        if (least == 0 || price.timing->seconds < least) least = price.timing->seconds;
      }
      const double bound_of_it = bound(index);
      const double efficiency = bound_of_it / std::max(price.timing->seconds, bound_of_it);
      const int size = size_class(bound_of_it);
      for (const int name : {kind(index).kind, kind(index).family}) {
        known_[{name, size}].add(efficiency);
        known_[{name, kAnySize}].add(efficiency);
      }
    }
  }

  DenseKey dense_key(int index) const {
    const Candidate& candidate = offered(index);
    return {&candidate.nodes, candidate.preference, candidate.algorithm, candidate.threads};
  }

  // If the kernel was timed in another dense layout, returns that time, because the work is equal.
  double loosened_bound(int index) const {
    const Candidate& candidate = offered(index);
    if (!candidate.has_kernel()) return 0;
    const double own_bound = bound(index);
    if (candidate.is_any_dense) {
      const auto found = dense_.find(dense_key(index));
      if (found != dense_.end()) return std::max(own_bound, found->second);
    }
    const int family = kind(index).family;
    if (candidate.is_measured_only()) {
      return std::max(own_bound, bound_by(own_bound, family, kAnySize, tuning_.slack_of_regions));
    }
    const auto same_product = products_.find({family, kind(index).product});
    if (same_product != products_.end()) {
      return std::max(own_bound, same_product->second / tuning_.slack_of_same_product);
    }
    const int kind_of_it = kind(index).kind;
    const int size = size_class(own_bound);
    // The most similar group of candidates counts.
    for (const double bound :
         {bound_by_alike(own_bound, kind_of_it, size),
          bound_by_other_sizes(own_bound, kind_of_it, tuning_.slack_of_other_sizes),
          bound_by(own_bound, family, size, tuning_.slack_of_other_kinds),
          bound_by_other_sizes(own_bound, family, tuning_.slack_of_others)}) {
      if (bound > 0) return std::max(own_bound, bound);
    }
    // Candidates that their backend expects to be slower are tried later.
    if (!is_single_threaded(candidate)) {
      return own_bound * estimates_[static_cast<size_t>(index)];
    }
    // One thread is not faster than all threads, apart from the cost of starting them.
    const int on_all = kind(index).family_on_all_threads;
    const double share = own_bound / task_.threads;
    const double bound = std::max(bound_by_alike(share, on_all, size_class(share)),
                                  bound_by_other_sizes(share, on_all, tuning_.slack_of_others));
    const bool is_short = bound < tuning_.thread_start_seconds;
    return is_short ? own_bound : std::max(own_bound, bound);
  }

  // The bound of a candidate whose roofline bound is `own_bound`, by the efficiency of similar ones
  // of one size class; 0 if none is known.
  double bound_by(double own_bound, int name, int size, double slack) const {
    const auto found = known_.find({name, size});
    if (found == known_.end()) return 0;
    return own_bound / (found->second.best * slack);
  }

  // The same for candidates of one kind and size, which need the least slack.
  double bound_by_alike(double own_bound, int name, int size) const {
    const auto found = known_.find({name, size});
    if (found == known_.end()) return 0;
    const bool are_several = found->second.count >= tuning_.several;
    return own_bound /
           (found->second.best * (are_several ? tuning_.slack_of_several : tuning_.slack_of_one));
  }

  // Same as bound_by(), by similar candidates of all sizes.
  double bound_by_other_sizes(double own_bound, int name, double slack) const {
    const int size = size_class(own_bound);
    double efficiency = 0;
    const auto end = known_.lower_bound({name, kAnySize});
    constexpr int kSmallest = std::numeric_limits<int>::min();
    for (auto known = known_.lower_bound({name, kSmallest}); known != end; ++known) {
      const int classes = std::max(0, size - known->first.second);
      efficiency = std::max(efficiency,
                            known->second.best * std::pow(tuning_.slack_of_smaller_size, classes));
    }
    return efficiency > 0 ? own_bound / (efficiency * slack) : 0;
  }

  // Not less than its bound, so that a candidate that was skipped because it could not win does not
  // win by its estimate.
  double guess(int index, double dearest) const {
    const Candidate& candidate = offered(index);
    if (!candidate.has_kernel()) return 0;
    const double lower_bound = context_factor(index) * loosened_bound(index);
    if (dearest > 0) return std::max(tuning_.skipped_over_slowest * dearest, lower_bound);
    return std::max({tuning_.guess_over_bound * bound(index), candidate.optimistic_seconds,
                     tuning_.guess_min_seconds, lower_bound});
  }

  double seconds_of(int index) const {
    const CandidatePrice& price = prices_[static_cast<size_t>(index)];
    return price.timing->seconds * (price.cost->in_context ? 1 : context_factor(index));
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
      price.seconds = seconds_of(index);
      dearest = std::max(dearest, price.seconds);
    }
    for (const int index : group.candidates) {
      CandidatePrice& price = price_of(index);
      if (price.timing == nullptr) {
        price.seconds = is_guessed(index) ? guess(index, dearest)
                                          : context_factor(index) * loosened_bound(index);
      }
      if (is_single_threaded(offered(index))) price.seconds += tuning_.arena_entry_seconds;
    }
  }

  const TuningTask& task_;
  const PriceTuning& tuning_;
  const std::vector<TuneGroup>& groups_;
  const PriceBasis& basis_;
  const std::vector<std::optional<CostKey>>& keys_;
  const CostTable& table_;
  const PriceOptions& options_;
  std::vector<CandidatePrice> prices_;
  std::vector<double> estimates_;    // see compare_estimates()
  std::map<int, Context> contexts_;  // by family
  Context all_contexts_;
  std::map<std::pair<int, int>, Efficiency> known_;  // by kind or family, and size
  std::map<DenseKey, double> dense_;                 // least seconds in any dense layout
  std::map<std::pair<int, int>, double> products_;   // least seconds, by family and product
};

double route_seconds(const PricedRoute& route, const CostTable& table, const PriceOptions& options,
                     const PriceTuning& tuning) {
  double seconds = 0;
  for (const ConversionCostKey& key : route.steps) {
    const auto found = table.conversions.find(key);
    if (found == table.conversions.end() || !found->second.refusal.empty()) {
      const bool is_bound =
          options.unmeasured == Unmeasured::Bounded && found == table.conversions.end();
      seconds += options.conversion_seconds(route.bytes) / (is_bound ? tuning.guess_over_bound : 1);
    } else {
      const auto measured = static_cast<double>(std::max<int64_t>(found->second.bytes, 1));
      seconds += found->second.timing.seconds * static_cast<double>(route.bytes) / measured;
    }
  }
  return seconds;
}

// Sets `product` and `is_mostly_product`.
void find_product(const TuningTask& task, const Candidate& candidate, CandidateKind& kind) {
  int products = 0;
  bool are_others_short = true;
  for (const NodeId id : candidate.nodes) {
    const Node& node = task.graph.nodes[static_cast<size_t>(id.index)];
    if (task.registry.has_trait(node, ops::kProduct)) {
      kind.product = id.index;
      ++products;
    } else {
      are_others_short =
          are_others_short && std::ranges::find(kShortOps, node.op) != kShortOps.end();
    }
  }
  if (products != 1) kind.product = -1;
  kind.is_mostly_product = products == 1 && are_others_short;
}

std::vector<CandidateKind> candidate_kinds(const TuningTask& task,
                                           const std::vector<TuneGroup>& groups) {
  const std::vector<std::string> families = candidate_families(task, groups);
  const std::vector<std::string> on_all = candidate_families(task, groups, task.threads);
  const ProcessorSpeed speed = assumed_speed();
  Numbers numbers;
  std::vector<CandidateKind> kinds(task.offers.candidates.size());
  for (const TuneGroup& group : groups) {
    // The types come first in the text; sizes are distinguished by the bound.
    const std::string text = group.text ? group.text->text.substr(group.text->text.find(": ")) : "";
    std::map<int, double> bounds;  // by threads
    for (const int index : group.candidates) {
      const auto position = static_cast<size_t>(index);
      const Candidate& candidate = task.offers.candidates[position];
      const int threads = candidate.threads == 0 ? task.threads : candidate.threads;
      if (!bounds.contains(threads)) {
        bounds[threads] = std::max(
            task.tuning.min_bound_seconds,
            bound_seconds(group.graph, task.registry, speed, threads, task.precision, task.tuning));
      }
      kinds[position] = {.family = numbers.of(families[position]),
                         .family_on_all_threads = numbers.of(on_all[position]),
                         .kind = numbers.of(families[position] + text),
                         .bound_seconds = bounds[threads]};
      find_product(task, candidate, kinds[position]);
    }
  }
  return kinds;
}

// Finds the routes of all values between layouts in which candidates make or read them.
void add_routes(const TuningTask& task, PriceBasis& basis) {
  const std::vector<ValueLayouts> layouts = value_layouts(task);
  Numbers types;
  std::map<std::array<int, 3>, int> known;  // by type, from, to
  basis.hops.resize(layouts.size());
  for (size_t index = 0; index < layouts.size(); ++index) {
    const ValueId value{static_cast<int32_t>(index)};
    const std::optional<TensorType> type = known_type(task.graph[value].type);
    const bool is_converted = layouts[index].made.size() + layouts[index].read.size() > 0;
    if (!type || !is_converted || task.graph[value].is_constant()) continue;
    // A value may be converted from any layout in which it is made or read, and the route through
    // the default layout may be cheaper than a direct one.
    std::set<LayoutId> all = {kDefaultLayout};
    for (const auto* some : {&layouts[index].made, &layouts[index].read}) {
      all.insert(some->begin(), some->end());
    }
    const int type_number = types.of(text(task.graph[value].type));
    for (const LayoutId from : all) {
      for (const LayoutId to : all) {
        const auto [entry, is_new] = known.emplace(std::array{type_number, from.index, to.index},
                                                   static_cast<int>(basis.routes.size()));
        if (is_new) {
          PricedRoute& route = basis.routes.emplace_back();
          route.bytes = tensor_bytes(type->element, type->dims);
          for (NeededConversion& step : conversions_between(task, value, from, to)) {
            route.steps.push_back(std::move(step.cost_key));
          }
        }
        basis.hops[index].push_back({from, to, entry->second});
      }
    }
  }
}

// Names of layouts that only one plug-in knows begin with its name (explain_illegal_layout_name()).
bool is_layout_of_another(std::string_view name, std::string_view backend) {
  const size_t colon = name.find(':');
  const std::string_view owner = name.substr(0, colon);
  // In the name of a sparse layout, the capacity follows the colon.
  const bool is_sparse = owner == TESSERA_LAYOUT_CSR || owner == TESSERA_LAYOUT_ROW_SPARSE;
  return colon != std::string_view::npos && owner != backend && !is_sparse;
}

}  // namespace

bool is_unsupported_layout(const TuningTask& task, int candidate, const Cost& cost) {
  // A layout that the offer named is known to the plug-in.
  if (cost.refusal.empty() || cost.build_seconds > 0) return false;
  const Candidate& offered = task.offers.candidates[static_cast<size_t>(candidate)];
  const auto is_foreign = [&](const auto& port) {
    return is_layout_of_another(task.layouts.format(port.layout), offered.backend());
  };
  return std::ranges::any_of(offered.inputs, is_foreign) ||
         std::ranges::any_of(offered.outputs, is_foreign);
}

std::vector<std::string> candidate_families(const TuningTask& task,
                                            const std::vector<TuneGroup>& groups,
                                            std::optional<int> threads) {
  std::vector<std::string> families(task.offers.candidates.size());
  for (const TuneGroup& group : groups) {
    const std::string op = main_op(group.graph, task.registry);
    for (const int index : group.candidates) {
      const auto position = static_cast<size_t>(index);
      const Candidate& candidate = task.offers.candidates[position];
      const int own_threads = candidate.threads == 0 ? task.threads : candidate.threads;
      families[position] = family_of(task, op, candidate, threads.value_or(own_threads));
    }
  }
  return families;
}

PriceBasis make_price_basis(const TuningTask& task, const std::vector<TuneGroup>& groups) {
  PriceBasis basis{.kinds = candidate_kinds(task, groups),
                   .weights = weights_between_runs(task.graph)};
  add_routes(task, basis);
  return basis;
}

Prices look_up_prices(const TuningTask& task, const std::vector<TuneGroup>& groups,
                      const PriceBasis& basis, const std::vector<std::optional<CostKey>>& keys,
                      const CostTable& table, const PriceOptions& options) {
  Prices prices;
  Pricer pricer(task, groups, basis, keys, table, options);
  prices.candidates = pricer.price_candidates();
  std::vector<double> routes;
  for (const PricedRoute& route : basis.routes) {
    routes.push_back(pricer.context_factor() * route_seconds(route, table, options, task.tuning));
  }
  const size_t count = task.layouts.size();
  prices.conversions.resize(basis.hops.size());
  for (size_t index = 0; index < basis.hops.size(); ++index) {
    if (basis.hops[index].empty()) continue;
    std::vector<double>& row = prices.conversions[index];
    // Values may not be supported by other layouts at all, so there are no routes through them.
    row.assign(count * count, std::numeric_limits<double>::infinity());
    for (size_t layout = 0; layout < count; ++layout) row[layout * count + layout] = 0;
    for (const PricedHop& hop : basis.hops[index]) {
      row[static_cast<size_t>(hop.from.index) * count + static_cast<size_t>(hop.to.index)] =
          routes[static_cast<size_t>(hop.route)];
    }
  }
  return prices;
}

}  // namespace tessera::tuning
