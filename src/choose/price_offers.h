// Offers with what they cost: measured where that is wanted, and told to whoever asks.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "choose/select_offers.h"
#include "place/margins.h"
#include "place/placement.h"
#include "plan/execution_plan.h"
#include "price/prices.h"
#include "price/reused_choice.h"
#include "tessera/tessera.h"

namespace tessera {

// Offers for all threads, then those for one thread where there are several. `view` shows the
// graph; OfferOptions::threads is not read.
Offers collect_offers_by_threads(const tessera_graph& view,
                                 std::span<const std::shared_ptr<const Plugin>> plugins,
                                 const LayoutTable& layouts, ThreadPool& pool,
                                 const OfferOptions& options);
// Those for one thread, and views.
Offers collect_offers_for_one_thread(const tessera_graph& view,
                                     std::span<const std::shared_ptr<const Plugin>> plugins,
                                     const LayoutTable& layouts, const OfferOptions& options);
// Those for all threads alone.
Offers collect_offers_for_all_threads(const tessera_graph& view,
                                      std::span<const std::shared_ptr<const Plugin>> plugins,
                                      const LayoutTable& layouts, ThreadPool& pool,
                                      OfferOptions options);

// Owns what prices refer to. The subject and the table must outlive it.
class PricedOffers {
 public:
  // Prices are there once they have been looked up. `runs_per_build` as PricingOptions has it.
  PricedOffers(const tuning::Subject& subject, const tuning::CostTable& table,
               int64_t runs_per_build);

  const std::vector<tuning::TuneGroup>& groups() const { return groups_; }
  // By candidate; nullopt where its group cannot be measured alone.
  const std::vector<std::optional<tuning::CostKey>>& keys() const { return keys_; }
  tuning::PricedSubject priced_subject() const { return {subject_, keys_, basis_}; }

  // Looks up all prices anew: the table has grown. With bounds for what it does not know, but
  // guesses for those candidates that are given up.
  void look_up_bounds(const std::vector<bool>& is_given_up);
  // The same with guesses.
  void look_up_guesses();

  // Whether the candidate's time is known.
  bool is_measured(int candidate) const {
    const tuning::CandidatePrice& price = prices_.candidates[static_cast<size_t>(candidate)];
    return price.timing != nullptr && price.cost->is_judged_here;
  }
  double seconds(int candidate) const {
    return prices_.candidates[static_cast<size_t>(candidate)].seconds;
  }
  // From here on, as PricingOptions has it.
  void set_runs_per_build(int64_t runs);
  // What building the kernel takes. Equal work is built once: libraries keep what they made. Not
  // measured: what those of its backend take that were, on average.
  double build_seconds(int candidate) const {
    return build_seconds_[static_cast<size_t>(candidate)];
  }
  // The part of it that one run has to earn.
  double amortized_build_seconds(int candidate) const {
    return build_weight_ * build_seconds(candidate);
  }

  // Puts prices, with the part of building that a run has to earn, into `problem`, which was made
  // of the same offers, and forbids what was refused, and what may be chosen only where it was
  // measured. Where prices are bounds, the latter is chosen all the same.
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
  // Not where tuning::is_lost_on_its_plugin().
  bool is_worth_reporting(size_t candidate) const;
  void look_up_builds();

  const tuning::Subject& subject_;
  const tuning::CostTable& table_;
  double build_weight_ = 0;  // that one run has to earn
  bool has_bounds_ = false;
  std::vector<bool> is_given_up_;  // by candidate, or empty
  std::vector<tuning::TuneGroup> groups_;
  std::vector<std::optional<tuning::CostKey>> keys_;
  tuning::PriceBasis basis_;
  tuning::Prices prices_;
  std::vector<int> alike_;             // by candidate: how many have its key
  std::vector<double> build_seconds_;  // by candidate
};

}  // namespace tessera
