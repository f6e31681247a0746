#include "reference_placer.h"

#include <algorithm>

#include "base/stopwatch.h"
#include "choose/placement_problem.h"
#include "place/explain_violation.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// A placement must be cheaper by this factor: the error of measured prices of a whole model is
// about 3%.
constexpr double kMinGain = 0.97;
// About half a second. A margin that takes longer is not computed.
constexpr double kMarginCells = 5e8;

// A run is assumed to save this time for each byte that kernels no longer read or write (most of
// these bytes are in the caches), and for each step that it no longer has.
constexpr double kSecondsPerByte = 1 / 40e9;
constexpr double kSecondsPerStep = 0.2e-6;

// The sum of `values`, by candidate, over `placement`; 0 if `values` is empty.
double sum_of(const std::vector<double>& values, const Placement& placement) {
  double sum = 0;
  if (values.empty()) return sum;
  for (const int index : placement.chosen) sum += values[static_cast<size_t>(index)];
  return sum;
}

// The time of a run for moving data and starting kernels, without the time for computing.
double seconds_of_passes(const PlacementProblem& problem, const Placement& placement) {
  double seconds = 0;
  for (const int index : placement.chosen) {
    const PlacementCandidate& candidate = problem.candidates[static_cast<size_t>(index)];
    if (candidate.sharing != PlacementCandidate::Sharing::None) continue;
    seconds += kSecondsPerStep;
    for (const auto* ports : {&candidate.inputs, &candidate.outputs}) {
      for (const PlacementPort& port : *ports) {
        seconds += kSecondsPerByte * static_cast<double>(port.bytes);
      }
    }
  }
  return seconds;
}

}  // namespace

ReferencePlacer::ReferencePlacer(const Graph& graph, const Offers& offers,
                                 const LayoutTable& layouts, bool keeps_sparse_storage)
    : problem_(make_problem(graph, offers, layouts)),
      places_(node_locations(graph)),
      keeps_sparse_storage_(keeps_sparse_storage),
      is_refused_(offers.candidates.size(), false),
      failed_to_build_(offers.candidates.size(), false) {
  for (const PlacementCandidate& candidate : problem_.candidates) {
    estimated_seconds_.push_back(candidate.seconds);
  }
  const bool has_others = std::ranges::any_of(offers.candidates, [](const Candidate& candidate) {
    return candidate.threads == 0 && candidate.has_kernel();
  });
  for (const Candidate& candidate : offers.candidates) {
    is_single_threaded_.push_back(has_others && candidate.threads == 1);
    is_measured_only_.push_back(candidate.is_measured_only());
    compile_seconds_.push_back(candidate.is_to_compile() ? candidate.build_seconds : 0);
  }
  update_forbidden();
}

void ReferencePlacer::follow_order() {
  for (PlacementCandidate& candidate : problem_.candidates) candidate.is_one_pass = false;
  is_solved_ = false;
}

void ReferencePlacer::set_prices(const ChoicePrices& prices) {
  for (size_t index = 0; index < problem_.candidates.size(); ++index) {
    problem_.candidates[index].seconds = prices.seconds[index];
  }
  problem_.conversion_prices = prices.conversions;
  problem_.results = prices.results;
  is_refused_ = prices.is_refused;
  build_seconds_ = prices.build_seconds;
  amortized_build_seconds_ = prices.amortized_build_seconds;
  has_prices_ = true;
  update_forbidden();
}

std::vector<bool> ReferencePlacer::forbidden() const {
  std::vector<bool> is_forbidden = is_refused_;
  for (size_t index = 0; index < failed_to_build_.size(); ++index) {
    if (failed_to_build_[index]) is_forbidden[index] = true;
    if (!has_prices_ && is_measured_only_[index]) is_forbidden[index] = true;
    if (!has_prices_ && !may_compile_ && compile_seconds_[index] > 0) is_forbidden[index] = true;
    if (!is_excluded_.empty() && is_excluded_[index]) is_forbidden[index] = true;
    if (!is_oversized_.empty() && is_oversized_[index]) is_forbidden[index] = true;
  }
  return is_forbidden;
}

void ReferencePlacer::update_forbidden() {
  problem_.is_forbidden = forbidden();
  problem_.is_forbidden = choose_storage(problem_, keeps_sparse_storage_);
  is_solved_ = false;
}

bool ReferencePlacer::is_usable(const Placement& placement) const {
  if (placement.chosen.empty()) return false;
  const bool is_allowed =
      std::none_of(placement.chosen.begin(), placement.chosen.end(),
                   [&](int index) { return problem_.is_forbidden[static_cast<size_t>(index)]; });
  return is_allowed && explain_violation(problem_, placement).empty();
}

Placement ReferencePlacer::choose() {
  if (!has_prices_) return choose_without_prices();
  const Placement solved = solve();
  if (is_usable(preferred_)) return preferred_;
  const Placement known = in_order();
  Placement best = greedy(known);
  if (best.chosen.empty()) best = solved;
  // Throws Uncovered, which names the node.
  if (best.chosen.empty()) best = choose_in_order(problem_, places_);
  double seconds = price(best);
  if (!solved.chosen.empty() && price(solved) < seconds) {
    best = solved;
    seconds = price(best);
  }
  const bool is_worth_it = known.chosen.empty() || seconds < kMinGain * price(known);
  return is_worth_it ? best : known;
}

Placement ReferencePlacer::choose_without_prices() {
  try {
    return choose_in_order(problem_, places_);
  } catch (const Uncovered&) {
    // Groups that were accepted early left a node uncovered. Another choice may cover it.
    Placement solved = solve();
    if (solved.chosen.empty()) throw;
    return solved;
  }
}

Placement ReferencePlacer::in_order() const {
  PlacementProblem problem = problem_;
  problem.conversion_prices.clear();
  for (size_t index = 0; index < is_single_threaded_.size(); ++index) {
    problem.candidates[index].seconds = estimated_seconds_[index];
    if (is_single_threaded_[index] || is_measured_only_[index]) problem.is_forbidden[index] = true;
    if (!may_compile_ && compile_seconds_[index] > 0) problem.is_forbidden[index] = true;
  }
  try {
    return choose_in_order(problem, places_);
  } catch (const Uncovered&) {
    return {};
  }
}

std::optional<CompilationGain> ReferencePlacer::compilation_gain(const Placement& chosen) const {
  const auto is_to_compile = [](double seconds) { return seconds > 0; };
  if (has_prices_ || may_compile_ || std::ranges::none_of(compile_seconds_, is_to_compile)) {
    return std::nullopt;
  }
  ReferencePlacer compiling = *this;
  compiling.allow_compiling();
  const Placement compiled = compiling.in_order();
  CompilationGain gain{.seconds_per_run = seconds_of_passes(problem_, chosen) -
                                          seconds_of_passes(problem_, compiled),
                       .compile_seconds = sum_of(compile_seconds_, compiled)};
  const bool is_gain = gain.compile_seconds > 0 && gain.seconds_per_run > 0;
  return is_gain ? std::optional(gain) : std::nullopt;
}

Placement ReferencePlacer::solve() {
  if (is_solved_) return solved_.placement;
  const Stopwatch stopwatch;
  PlacementEffort effort;
  if (max_seconds_ > 0) {
    effort.network.should_continue = [&] { return stopwatch.read().seconds < max_seconds_; };
  }
  solved_ = solve_placement(problem_, effort);
  solve_seconds_ = stopwatch.read().seconds;
  is_solved_ = true;
  return solved_.placement;
}

Placement ReferencePlacer::solve_or_greedy() {
  Placement solved = solve();
  return solved.chosen.empty() ? greedy() : solved;
}

Placement ReferencePlacer::greedy() const { return greedy(Placement{}); }

Placement ReferencePlacer::greedy(const Placement& known) const {
  try {
    return choose_by_price(problem_, known, places_);
  } catch (const Uncovered&) {
    // Groups that were accepted early left a node uncovered.
    return known;
  }
}

Placement ReferencePlacer::single_backend(int preference) const {
  const std::optional<PlacementProblem> problem = problem_of(preference);
  return problem ? solve_placement(*problem).placement : Placement{};
}

Placement ReferencePlacer::unsplit(int preference) const {
  std::optional<PlacementProblem> problem = problem_of(preference);
  if (!problem) return {};
  for (PlacementCandidate& candidate : problem->candidates) candidate.is_one_pass = false;
  try {
    return choose_in_order(*problem, places_);
  } catch (const Uncovered&) {
    return {};
  }
}

std::optional<PlacementProblem> ReferencePlacer::problem_of(int preference) const {
  PlacementProblem problem = problem_;
  std::vector<bool> has_own(problem.nodes.size(), false);
  const auto is_forbidden = [&](size_t index) { return problem.is_forbidden[index]; };
  bool has_any = false;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (is_forbidden(index) || candidate.preference != preference) continue;
    has_any = true;
    for (const int node : candidate.nodes) has_own[static_cast<size_t>(node)] = true;
  }
  if (!has_any) return std::nullopt;
  for (size_t index = 0; index < problem.candidates.size(); ++index) {
    const PlacementCandidate& candidate = problem.candidates[index];
    if (candidate.preference == preference) continue;
    // Views run nothing, so those of every backend are allowed.
    if (candidate.sharing != PlacementCandidate::Sharing::None) continue;
    const bool takes_over =
        std::any_of(candidate.nodes.begin(), candidate.nodes.end(),
                    [&](int node) { return has_own[static_cast<size_t>(node)]; });
    if (takes_over) problem.is_forbidden[index] = true;
  }
  return problem;
}

double ReferencePlacer::price(const Placement& placement) const {
  return predicted_seconds(problem_, placement);
}

double ReferencePlacer::amortized_build_seconds(const Placement& placement) const {
  return sum_of(amortized_build_seconds_, placement);
}

double ReferencePlacer::build_seconds(const Placement& placement) const {
  return sum_of(build_seconds_, placement);
}

PlacementDescription ReferencePlacer::describe(const Placement& placement) const {
  const double total = price(placement);
  PlacementDescription description{.predicted_seconds = total - amortized_build_seconds(placement),
                                   .build_seconds = build_seconds(placement),
                                   .lower_bound_seconds = solved_.lower_bound,
                                   .is_proven_optimal = solved_.is_found() && solved_.is_proven(),
                                   .solve_seconds = solve_seconds_};
  if (solved_.lower_bound > 0) {
    // Sums in another order differ by rounding, so the gap could be negative.
    description.gap = std::max(0.0, total / solved_.lower_bound - 1);
  }
  return description;
}

std::vector<CandidateMargin> ReferencePlacer::margins(double search_seconds) const {
  if (search_seconds <= 0 || !solved_.is_found() || !solved_.is_proven()) return {};
  const Stopwatch stopwatch;
  return find_margins(problem_, solved_, {.network = {.work_cells = kMarginCells}},
                      [&] { return stopwatch.read().seconds < search_seconds; });
}

}  // namespace tessera
