// Offers with their prices, and descriptions of both.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "choose/choice_problem.h"
#include "choose/choose_tuning.h"
#include "choose/select_offers.h"
#include "place/margins.h"
#include "place/placement.h"
#include "plan/execution_plan.h"
#include "price/prices.h"
#include "price/reused_choice.h"
#include "tessera/tessera.h"

namespace tessera {

// Returns offers for all threads of `pool`, followed by offers for one thread if the pool has
// several. `view` is the graph. OfferOptions::threads is ignored.
Offers collect_offers_by_threads(const tessera_graph& view,
                                 std::span<const std::shared_ptr<const Plugin>> plugins,
                                 const LayoutTable& layouts, ThreadPool& pool,
                                 const OfferOptions& options);
// Returns offers for one thread, and views.
Offers collect_offers_for_one_thread(const tessera_graph& view,
                                     std::span<const std::shared_ptr<const Plugin>> plugins,
                                     const LayoutTable& layouts, const OfferOptions& options);
// Returns only the offers for all threads of `pool`.
Offers collect_offers_for_all_threads(const tessera_graph& view,
                                      std::span<const std::shared_ptr<const Plugin>> plugins,
                                      const LayoutTable& layouts, ThreadPool& pool,
                                      OfferOptions options);

// Looks up and holds the prices of offers. `task` and `table` must outlive this.
class PricedOffers {
 public:
  // Prices are available after the first look_up_bounds() or look_up_guesses(). For
  // `runs_per_build` see PricingOptions.
  PricedOffers(const tuning::TuningTask& task, const tuning::CostTable& table,
               int64_t runs_per_build, const ChooseTuning& tuning = {});

  const std::vector<tuning::TuneGroup>& groups() const { return groups_; }
  // By candidate; nullopt if its group cannot be measured alone.
  const std::vector<std::optional<tuning::CostKey>>& keys() const { return keys_; }
  tuning::PricedTask priced_task() const { return {task_, keys_, basis_}; }

  // Looks up all prices again, after the table has changed. Unmeasured candidates get bounds, but
  // the candidates in `is_given_up` get guesses.
  void look_up_bounds(const std::vector<bool>& is_given_up);
  // Looks up all prices again, with guesses for all unmeasured candidates.
  void look_up_guesses();

  // Whether the candidate's time is known.
  bool is_measured(int candidate) const {
    const tuning::CandidatePrice& price = prices_.candidates[static_cast<size_t>(candidate)];
    return price.timing != nullptr && price.cost->is_verified_here;
  }
  double seconds(int candidate) const {
    return prices_.candidates[static_cast<size_t>(candidate)].seconds;
  }
  // Changes PricingOptions::runs_per_build from now on.
  void set_runs_per_build(int64_t runs);
  // Time to build the kernel. Candidates with equal keys share it, because libraries cache what
  // they built. If it was not measured: the average of the measured candidates of its backend.
  double build_seconds(int candidate) const {
    return build_seconds_[static_cast<size_t>(candidate)];
  }
  // The part of the build time that each run pays: 1 / runs_per_build.
  double amortized_build_seconds(int candidate) const {
    return build_weight_ * build_seconds(candidate);
  }

  // The prices for a choice among these offers. Refused candidates must not be chosen, and neither
  // unmeasured candidates that need a measured price to be chosen, except if their prices are
  // bounds.
  ChoicePrices choice_prices() const;
  // Returns one refusal for each node of each refused candidate.
  std::vector<Refusal> refusals() const;

  // Descriptions for the user: candidates, with whether they were chosen; conversions with a
  // measured price. `margins` is by candidate, or empty.
  std::vector<CandidateDescription> describe(const Placement& placement,
                                             const std::vector<CandidateMargin>& margins) const;
  std::vector<ConversionDescription> describe_conversions() const;
  // By step of `plan`: its price.
  std::vector<double> step_seconds(const ExecutionPlan& plan) const;
  // By step of `plan`: for a kernel that computes several nodes, the sum of the cheapest measured
  // candidates that compute them in smaller groups; nullopt if not enough were measured.
  std::vector<std::optional<double>> step_unfused_seconds(const ExecutionPlan& plan) const;

 private:
  CandidateDescription describe(size_t candidate) const;
  // False if tuning::is_unsupported_layout().
  bool is_worth_reporting(size_t candidate) const;
  void look_up(tuning::PriceOptions options);
  void look_up_builds();

  const tuning::TuningTask& task_;
  const tuning::CostTable& table_;
  const ChooseTuning tuning_;
  double build_weight_ = 0;  // part of the build time that each run pays
  bool has_bounds_ = false;
  std::vector<bool> is_given_up_;  // by candidate, or empty
  std::vector<tuning::TuneGroup> groups_;
  std::vector<std::optional<tuning::CostKey>> keys_;
  tuning::PriceBasis basis_;
  tuning::Prices prices_;
  std::vector<int> candidates_with_key_;  // by candidate: number of candidates with its key
  std::vector<double> build_seconds_;     // by candidate
};

}  // namespace tessera
