// Derives the prices that a choice uses from a CostTable.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "price/cost_table.h"
#include "price/groups.h"

namespace tessera::tuning {

// The price of one candidate.
struct CandidatePrice {
  double seconds = 0;
  // Its entry in the table; null: there is none, and `seconds` is an estimate.
  const Cost* cost = nullptr;
  // The time in the entry that applies to this graph; null if it was refused.
  const Timing* timing = nullptr;
  bool is_refused() const { return cost != nullptr && !cost->refusal.empty(); }
};

// Whether a candidate that accepts any dense layout could not be built for a layout that only
// another plug-in knows. Such failures are not reported.
bool is_unsupported_layout(const TuningTask& task, int candidate, const Cost& cost);

struct Prices {
  std::vector<CandidatePrice> candidates;  // by candidate
  // By value: the price from layout a to b at index a * layouts + b; infinity if no candidate makes
  // or reads it in one of them. Empty for values without routes.
  std::vector<std::vector<double>> conversions;
};

// By candidate, the name of its family: candidates that do the same kind of work in the same way
// (backend, algorithm, main op, layouts and threads). Ops fused to a product hardly matter. With
// `threads`, as if all candidates ran on that many.
std::vector<std::string> candidate_families(const TuningTask& task,
                                            const std::vector<TuneGroup>& groups,
                                            std::optional<int> threads = std::nullopt);

// How to price candidates and conversions without measurements.
enum class Unmeasured : uint8_t {
  // A likely time, so that choices rest on measurements. If others of its group were measured, it
  // was skipped because it could not win: twice the slowest of these. Otherwise four times its
  // bound from the table of assumed_speed(), a typical ratio for kernels, or the backend's estimate
  // if that is larger. Never less than Bounded.
  Guessed,
  // A lower bound, so that everything that could win is chosen and then measured. Similar
  // candidates (backend, algorithm, ops with attributes, layouts, threads, about the same work)
  // come similarly near to their bounds: if some were measured, that ratio is applied, with slack.
  // Ops of an instruction that are fused to a product change its time little: if a kernel was
  // measured with others or none fused to the same product, its time is the bound, with slack.
  Bounded,
};

struct PriceOptions {
  Unmeasured unmeasured = Unmeasured::Guessed;
  // By candidate: whether it is priced as Guessed regardless of `unmeasured`; empty: none.
  std::vector<bool> is_guessed;
  // The price of an unmeasured conversion by its size in bytes.
  std::function<double(int64_t bytes)> conversion_seconds = {};
};

// Properties of a candidate that do not change with measurements.
struct CandidateKind {
  int family = 0;                  // index of its name in candidate_families()
  int family_on_all_threads = 0;   // the same as if it ran on all threads
  int kind = 0;                    // like family, but also distinguishes ops and attributes
  int product = -1;                // the only node that is a product; -1: there is none, or several
  bool is_mostly_product = false;  // the other nodes take an instruction for each element
  double bound_seconds = 0;        // roofline bound for assumed_speed()
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
  std::vector<std::vector<PricedHop>> hops;  // by value; empty if it is never converted
};
PriceBasis make_price_basis(const TuningTask& task, const std::vector<TuneGroup>& groups);

// Prices of all candidates and conversions. A conversion of another size than the measured one is
// scaled in proportion. A candidate on one thread of several also pays for leaving the pool. If
// some candidates were timed in context, the isolated times of the others are scaled by the ratio
// of their family, or of all. `table` must outlive the result.
Prices look_up_prices(const TuningTask& task, const std::vector<TuneGroup>& groups,
                      const PriceBasis& basis, const std::vector<std::optional<CostKey>>& keys,
                      const CostTable& table, const PriceOptions& options);

}  // namespace tessera::tuning
