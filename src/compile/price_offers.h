// Offers with what they cost: measured where that is wanted, and told to whoever asks.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/select_offers.h"
#include "place/margins.h"
#include "place/placement.h"
#include "plan/execution_plan.h"
#include "tessera/tessera.h"
#include "tune/carried_choice.h"
#include "tune/prices.h"
#include "tune/shared_costs.h"
#include "tune/tune.h"

namespace tessera {

// How a choice comes to know prices.
struct PricingOptions {
  // What is known, and where what is measured is added; null: the choice is made in order.
  tuning::CostTable* costs = nullptr;
  // Where `costs` is completed from: what the process knows of this graph's candidates; may be
  // null.
  tuning::SharedCosts* shared = nullptr;
  // The plan to take as long as it can be used, whatever `costs` name.
  std::optional<tuning::KnownPlan> known_plan = {};
  // Where there is such a plan, here or in the costs, nothing is measured.
  bool relies_on_known_plan = false;
  bool measures = false;      // what is not known yet and could win
  bool measures_all = false;  // also what could not
  // Backends of which nothing is measured: what is not known of them could not win.
  std::set<std::string> settled_backends = {};
  // Graphs that take less than a millisecond are measured in this process, where nothing is to be
  // started for them: no library is among those asked that this process would not run anyway.
  bool measures_short_here = false;
  // Nobody waits for it: graphs that take little get as much time as all others.
  bool is_behind_runs = false;
  // What was found out for the same network with other shapes, to choose by; null: nothing.
  const tuning::CarriedChoice* carried = nullptr;
  // How often a process runs what it has built, so that building a kernel counts with so small a
  // part; 0: building costs nothing.
  int64_t runs_per_build = 0;
  // Also find a plan that starts sooner, where building what is chosen takes long.
  bool wants_until_built = false;
  double margin_search_seconds = 0;  // see BindOptions
  double solve_budget_seconds = 0;   // see BindOptions
  tuning::TuneOptions tune;
};

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
  double build_part(int candidate) const { return build_share_ * build_seconds(candidate); }

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
  bool is_news(size_t candidate) const;
  void look_up_builds();

  const tuning::Subject& subject_;
  const tuning::CostTable& table_;
  double build_share_ = 0;  // that one run has to earn
  bool has_bounds_ = false;
  std::vector<bool> is_given_up_;  // by candidate, or empty
  std::vector<tuning::TuneGroup> groups_;
  std::vector<std::optional<tuning::CostKey>> keys_;
  tuning::PriceBasis basis_;
  tuning::Prices prices_;
  std::vector<int> alike_;             // by candidate: how many have its key
  std::vector<double> build_seconds_;  // by candidate
};

// Every candidate for `graph` that `selection` leaves, checked against the reference.
struct CheckedOffers {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};
CheckedOffers check_offers(const Graph& graph, const ops::Registry& registry,
                           const std::vector<std::shared_ptr<const Plugin>>& plugins,
                           ThreadPool& pool, const OfferOptions& offered,
                           const OfferSelection& selection, tuning::TuneOptions options);

// Throws LetGo where a constant's elements were let go: measuring runs the reference, which reads
// all of them.
void check_has_elements(const Graph& graph);

TuningDescription describe_tuning(tuning::TuneReport report);

}  // namespace tessera
