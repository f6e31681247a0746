#include "place/value_layouts.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "solver/cost_network.h"

namespace tessera {
namespace {

// The number of sets of layouts is exponential in the number of layouts. If there are more layouts
// than this, some that are not wanted are ignored as intermediate layouts. The wanted layouts of
// one value are far fewer.
constexpr size_t kMaxLayouts = 12;

using Set = uint32_t;      // bit mask of indices of ConversionTrees::layouts_
constexpr Set kStart = 1;  // the source only

// The cheapest conversions from the source to every set of layouts. This is a Steiner tree problem;
// sets of this size are solved exactly by dynamic programming over sets, which adds one layout at a
// time.
class ConversionTrees {
 public:
  ConversionTrees(const PlacementProblem& problem, int value, int source,
                  const std::vector<int>& wanted)
      : problem_(problem), value_(value), layouts_({source}) {
    for (const int layout : wanted) add(layout);
    add_reachable();
    const size_t count = size_t{1} << layouts_.size();
    seconds_.assign(count, kForbidden);
    before_.assign(count, 0);
    seconds_[kStart] = 0;
    for (Set set = kStart; set < count; ++set) {
      if (seconds_[set] == kForbidden) continue;
      for (size_t position = 0; position < layouts_.size(); ++position) {
        const Set next = set | (Set{1} << position);
        if (next == set) continue;
        const double seconds = seconds_[set] + price_into(set, layouts_[position]).first;
        if (seconds >= seconds_[next]) continue;
        seconds_[next] = seconds;
        before_[next] = set;
      }
    }
  }

  // The cheapest set that contains `layouts`.
  Set cheapest_with(const std::vector<int>& layouts) const {
    Set needed = kStart;
    for (const int layout : layouts) needed |= Set{1} << index_of(layout);
    Set best = needed;
    for (Set set = needed; set < seconds_.size(); ++set) {
      if ((set & needed) == needed && seconds_[set] < seconds_[best]) best = set;
    }
    return best;
  }

  double seconds(Set set) const { return seconds_[set]; }

  std::vector<PlacementConversion> conversions(Set set) const {
    std::vector<PlacementConversion> made;
    for (; set != kStart; set = before_[set]) {
      const Set added = set & ~before_[set];
      size_t position = 0;
      while ((added >> position & 1) == 0) ++position;
      const int to = layouts_[position];
      made.push_back({value_, price_into(before_[set], to).second, to});
    }
    std::reverse(made.begin(), made.end());
    return made;
  }

 private:
  void add(int layout) {
    if (std::find(layouts_.begin(), layouts_.end(), layout) == layouts_.end()) {
      layouts_.push_back(layout);
    }
  }

  size_t index_of(int layout) const {
    return static_cast<size_t>(std::find(layouts_.begin(), layouts_.end(), layout) -
                               layouts_.begin());
  }

  // Adds the layouts that conversions can reach: each may be an intermediate layout.
  void add_reachable() {
    size_t known = 0;
    while (known < layouts_.size()) {
      for (int layout = 0; layout < problem_.layout_count; ++layout) {
        if (layouts_.size() >= kMaxLayouts) return;
        if (conversion_price(problem_, value_, layouts_[known], layout) < kForbidden) add(layout);
      }
      ++known;
    }
  }

  // The price of the cheapest conversion from any layout of `set` to `layout`, and its source.
  std::pair<double, int> price_into(Set set, int layout) const {
    std::pair<double, int> best = {kForbidden, 0};
    for (size_t position = 0; position < layouts_.size(); ++position) {
      if ((set >> position & 1) == 0) continue;
      best = std::min(best, {conversion_price(problem_, value_, layouts_[position], layout),
                             layouts_[position]});
    }
    return best;
  }

  const PlacementProblem& problem_;
  int value_;
  std::vector<int> layouts_;     // the source first
  std::vector<double> seconds_;  // by set
  std::vector<Set> before_;      // by set: the set before its last conversion
};

}  // namespace

std::vector<ValueChoice> list_choices(const PlacementProblem& problem, int value, int source,
                                      const std::vector<int>& wanted) {
  if (source == kNoSource) return {{}};
  const ConversionTrees trees(problem, value, source, wanted);
  const size_t count = size_t{1} << wanted.size();
  std::vector<double> seconds(count);
  const auto layouts_in = [&](size_t set) {
    std::vector<int> layouts;
    for (size_t position = 0; position < wanted.size(); ++position) {
      if ((set >> position & 1) != 0) layouts.push_back(wanted[position]);
    }
    return layouts;
  };
  for (size_t set = 0; set < count; ++set) {
    seconds[set] = trees.seconds(trees.cheapest_with(layouts_in(set)));
  }
  std::vector<ValueChoice> choices;
  for (size_t set = 0; set < count; ++set) {
    bool is_dominated = seconds[set] == kForbidden;
    for (size_t position = 0; position < wanted.size() && !is_dominated; ++position) {
      const size_t more = set | (size_t{1} << position);
      is_dominated = more != set && seconds[more] <= seconds[set];
    }
    if (!is_dominated) choices.push_back({source, layouts_in(set), seconds[set]});
  }
  return choices;
}

std::vector<PlacementConversion> conversions_of(const PlacementProblem& problem, int value,
                                                const std::vector<int>& wanted,
                                                const ValueChoice& choice) {
  if (choice.source == kNoSource) return {};
  const ConversionTrees trees(problem, value, choice.source, wanted);
  return trees.conversions(trees.cheapest_with(choice.layouts));
}

}  // namespace tessera
