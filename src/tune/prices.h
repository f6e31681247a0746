// From a CostTable to the prices that a choice is made by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/cost_table.h"
#include "tune/groups.h"

namespace tessera::tuning {

// What one candidate is worth.
struct CandidatePrice {
  double seconds = 0;
  // What the table has of it; null: nothing, and `seconds` is a guess.
  const Cost* cost = nullptr;
  // The time in it that counts for this graph; null where it was refused.
  const Timing* timing = nullptr;
  bool is_refused() const { return cost != nullptr && !cost->refusal.empty(); }
};

// Whether a candidate, which was offered for any dense layout, could not be built for one that
// another plug-in brings, and only that one knows. Nobody needs to be told.
bool is_lost_on_its_plugin(const Subject& subject, int candidate, const Cost& cost);

struct Prices {
  std::vector<CandidatePrice> candidates;  // by candidate
  // By value, from layout a to b at a * layouts + b: infinity where nothing makes or reads it in
  // one of them. Empty for what no route leads to or from.
  std::vector<std::vector<double>> conversions;
};

// By candidate a name, the same for candidates that do the same kind of work in the same way:
// backend, algorithm, main op, layouts and threads. With what a product is fused hardly counts.
// With `threads` as if all ran on so many.
std::vector<std::string> candidate_families(const Subject& subject,
                                            const std::vector<TuneGroup>& groups,
                                            std::optional<int> threads = std::nullopt);

// How a candidate or conversion is priced that nobody measured.
enum class Unmeasured : uint8_t {
  // As what it would likely take, so that a choice rests on what is known. Where others of its
  // group
  // were measured, it was left out because it could not win: twice the dearest of these. Else its
  // bound by the table of assumed_speed(), four times, which is what kernels reach on the whole, or
  // what its backend says where that is more. Never less than Bounded would say.
  Guessed,
  // As what it takes at least, so that whatever could win is chosen, and then measured. Candidates
  // alike (backend, algorithm, ops with their attributes, layouts, threads, about as much work)
  // come
  // about as near to their bounds: where some were measured, that is reckoned with, loosened.
  Bounded,
};

struct PriceOptions {
  Unmeasured unmeasured = Unmeasured::Guessed;
  // By candidate, those that are guessed whatever `unmeasured` says; empty: none.
  std::vector<bool> is_guessed;
  // Of a conversion that nobody measured, from its bytes.
  double (*conversion_seconds)(int64_t bytes) = nullptr;
};

// What prices rest on and no measurement changes.
struct CandidateKind {
  int family = 0;                 // equal for equal names of candidate_families()
  int family_on_all_threads = 0;  // the same as if it ran on all threads
  int kind = 0;                   // equal where also ops and attributes are
  double bound_seconds = 0;       // by the roofline of assumed_speed()
};
struct PricedRoute {
  std::vector<ConversionCostKey> steps;
  int64_t bytes = 0;
};
struct PricedHop {
  LayoutId from;
  LayoutId to;
  int route = 0;
};
struct PriceBasis {
  std::vector<CandidateKind> kinds;  // by candidate
  Weights weights = Weights::Warm;
  std::vector<PricedRoute> routes;
  std::vector<std::vector<PricedHop>> hops;  // by value; empty where it is never converted
};
PriceBasis make_price_basis(const Subject& subject, const std::vector<TuneGroup>& groups);

// A conversion of another size than the one measured costs in proportion. What runs on one thread
// of several costs what it takes to leave the others besides. Where some candidates of the graph
// were timed in context, what the others took alone is scaled by what that changed on the whole.
// `table` must outlive the result.
Prices look_up_prices(const Subject& subject, const std::vector<TuneGroup>& groups,
                      const PriceBasis& basis, const std::vector<std::optional<CostKey>>& keys,
                      const CostTable& table, const PriceOptions& options);

}  // namespace tessera::tuning
