// Offers with what they cost: measured where that is wanted, and told to whoever asks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/select_offers.h"
#include "place/margins.h"
#include "place/placement.h"
#include "plan/execution_plan.h"
#include "tessera/tessera.h"
#include "tune/prices.h"
#include "tune/tune.h"

namespace tessera {

// How a choice comes to know prices.
struct PricingOptions {
  // What is known, and where what is measured is added; null: the choice is made in order.
  tuning::CostTable* costs = nullptr;
  bool measures = false;             // what is not known yet
  double margin_search_seconds = 0;  // see BindOptions
  tuning::TuneOptions tune;
};

// Offers for all threads, then those for one thread where there are several. `view` shows the
// graph.
Offers collect_offers_by_threads(const tessera_graph& view,
                                 std::span<const std::shared_ptr<const Plugin>> plugins,
                                 const LayoutTable& layouts, ThreadPool& pool, int precision);

// Owns what prices refer to. The subject and the table must outlive it.
class PricedOffers {
 public:
  PricedOffers(const tuning::Subject& subject, const tuning::CostTable& table);

  // Puts prices into `problem`, which was made of the same offers, and forbids what was refused.
  void apply(PlacementProblem& problem) const;
  // A refusal for each node of what was refused.
  std::vector<Refusal> refusals() const;

  // For people: every candidate, and which of them were chosen; every conversion with a price.
  // `margins` by candidate, or empty.
  std::vector<CandidateDescription> describe(const Placement& placement,
                                             const std::vector<CandidateMargin>& margins) const;
  std::vector<ConversionDescription> describe_conversions() const;
  // What each step of a plan costs by these prices.
  std::vector<double> step_seconds(const ExecutionPlan& plan) const;

 private:
  CandidateDescription describe(size_t candidate) const;

  const tuning::Subject& subject_;
  const tuning::CostTable& table_;
  std::vector<tuning::TuneGroup> groups_;
  std::vector<std::optional<tuning::CostKey>> keys_;
  tuning::Prices prices_;
};

// Every candidate for `graph` that `selection` leaves, checked against the reference.
struct CheckedOffers {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};
CheckedOffers check_offers(const Graph& graph, const ops::Registry& registry,
                           const std::vector<std::shared_ptr<const Plugin>>& plugins,
                           ThreadPool& pool, int precision, const OfferSelection& selection,
                           tuning::TuneOptions options);

// Throws LetGo where a constant's elements were let go: measuring runs the reference, which reads
// all of them.
void check_has_elements(const Graph& graph);

TuningDescription describe_tuning(tuning::TuneReport report);
std::vector<std::string> names_of(const std::vector<std::shared_ptr<const Plugin>>& plugins);

// What the choice assumes of this machine until conversions are measured.
double assumed_conversion_seconds(int64_t bytes);

}  // namespace tessera
