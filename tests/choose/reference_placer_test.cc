// Compares the functions of choose/choice.h with ReferencePlacer: on random offers, prices and
// sequences of constraints, they must choose the same.
#include "reference_placer.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/test_plugins.h"
#include "base/at.h"
#include "base/random_below_test.h"
#include "choose/choice.h"
#include "graph/sparse_form.h"
#include "tessera/backend.h"

namespace tessera {
namespace {

constexpr int kProblems = 300;
constexpr int kSteps = 12;
constexpr int kBackends = 3;
// Much longer than the search of any of these problems.
constexpr double kMarginSeconds = 60;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  int below(int limit) { return random_below(engine_, limit); }
  bool one_in(int count) { return below(count) == 0; }
  // Of few values, so that prices are equal now and then.
  double seconds() { return 1e-6 * (1 + below(12)); }
  // `count` times whether, with a probability of 1 / `part`.
  std::vector<bool> some(size_t count, int part) {
    std::vector<bool> chosen;
    for (size_t index = 0; index < count; ++index) chosen.push_back(one_in(part));
    return chosen;
  }

 private:
  std::mt19937 engine_;
};

// A graph of a few nodes, and offers of three backends in four layouts, one of them sparse.
class RandomOffers {
 public:
  explicit RandomOffers(Random& random)
      : random_(random),
        plugin_(testing_plugins::open_mirror([](const auto&, testing_plugins::Proposals&) {})),
        layouts_(std::array{plugin_}, std::array{SparseForm{SparseFormat::Csr, 8}}) {
    const int nodes = 1 + random.below(6);
    add_value("x");
    add_value("w").constant = Tensor(DataType::Float32, {8, 8});
    for (int node = 0; node < nodes; ++node) add_node(node);
    for (int node = 0; node < nodes; ++node) {
      // A node without candidates is rare.
      const int count = random.one_in(60) ? 0 : 1 + random.below(4);
      for (int candidate = 0; candidate < count; ++candidate) offer({NodeId{node}});
    }
    for (int group = random.below(4); group > 0 && nodes > 1; --group) offer_group();
  }

  const Graph& graph() const { return graph_; }
  const Offers& offers() const { return offers_; }
  const LayoutTable& layouts() const { return layouts_; }

 private:
  Value& add_value(const std::string& name) {
    graph_.values.push_back(
        {.name = name, .type = Type::tensor(DataType::Float32, Shape{Dim(8), Dim(8)})});
    if (random_.one_in(6)) graph_.values.back().sparse = SparseForm{SparseFormat::Csr, 8};
    return graph_.values.back();
  }

  void add_node(int index) {
    const std::string name(1, static_cast<char>('a' + index));
    const ValueId output{static_cast<int32_t>(graph_.values.size())};
    Node node{.name = name, .op = "Op", .outputs = {output}};
    for (int input = random_.below(2); input >= 0; --input) {
      // Mostly a recent value, so that chains arise.
      const int back = random_.one_in(3) ? random_.below(output.index) : 0;
      node.inputs.push_back(ValueId{output.index - 1 - back});
    }
    graph_.nodes.push_back(std::move(node));
    add_value("v" + name);
    if (index == 0) graph_.inputs = {ValueId{0}};
    if (random_.one_in(4)) graph_.kept.push_back(output);
    graph_.outputs = {output};
  }

  LayoutId layout() {
    return LayoutId{random_.one_in(2) ? 0 : random_.below(static_cast<int>(layouts_.size()))};
  }

  void offer_group() {
    const int count = static_cast<int>(graph_.nodes.size());
    std::vector<NodeId> nodes;
    const int first = random_.below(count - 1);
    for (int node = first; node < count && nodes.size() < 3; ++node) {
      if (node == first || !random_.one_in(3)) nodes.push_back(NodeId{node});
    }
    if (nodes.size() > 1) offer(nodes);
  }

  // Offers to compute `nodes`, ascending. Reads what they do not make, and makes all their outputs.
  void offer(const std::vector<NodeId>& nodes) {
    Candidate candidate{.plugin = plugin_,
                        .preference = random_.below(kBackends),
                        .algorithm = std::to_string(offers_.candidates.size()),
                        .nodes = nodes,
                        .optimistic_seconds = random_.one_in(8) ? 0 : random_.seconds(),
                        .build_seconds = 100 * random_.seconds(),
                        .threads = random_.below(2)};
    const LayoutId common = layout();
    std::vector<bool> is_made(graph_.values.size(), false);
    for (const NodeId id : nodes) {
      for (const ValueId input : graph_[id].inputs) {
        if (is_made[at(input.index)]) continue;
        candidate.inputs.push_back({.value = input,
                                    .layout = random_.one_in(4) ? layout() : common,
                                    .alignment_bytes = random_.one_in(2) ? 64 : 4,
                                    .accepts_strides = random_.one_in(2)});
      }
      for (const ValueId output : graph_[id].outputs) {
        is_made[at(output.index)] = true;
        candidate.outputs.push_back(
            {.value = output, .layout = random_.one_in(4) ? layout() : common});
      }
    }
    if (random_.one_in(3)) candidate.flags |= TESSERA_CANDIDATE_ONE_PASS;
    if (random_.one_in(6)) candidate.flags |= TESSERA_CANDIDATE_MEASURED_ONLY;
    if (random_.one_in(6)) candidate.flags |= TESSERA_CANDIDATE_TO_COMPILE;
    if (nodes.size() == 1 && random_.one_in(5)) make_view(candidate);
    offers_.candidates.push_back(std::move(candidate));
  }

  void make_view(Candidate& candidate) {
    candidate.flags = TESSERA_CANDIDATE_VIEW;
    candidate.optimistic_seconds = 0;
    candidate.inputs.resize(1);
    candidate.inputs[0].layout = candidate.outputs[0].layout = kDefaultLayout;
    candidate.outputs[0].part.offset_bytes = 4 * random_.below(2);
    if (random_.one_in(3)) candidate.outputs[0].part.strides = {16, 1};
  }

  Random& random_;
  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  Graph graph_;
  Offers offers_;
};

ChoicePrices random_prices(Random& random, const RandomOffers& offered) {
  ChoicePrices prices;
  const size_t count = offered.offers().candidates.size();
  prices.is_refused = random.some(count, 10);
  for (size_t index = 0; index < count; ++index) {
    prices.amortized_build_seconds.push_back(random.one_in(2) ? 0 : 0.1 * random.seconds());
    prices.build_seconds.push_back(100 * random.seconds());
    prices.seconds.push_back(random.seconds() + prices.amortized_build_seconds.back());
  }
  const auto layouts = static_cast<int>(offered.layouts().size());
  for (size_t value = 0; value < offered.graph().values.size(); ++value) {
    std::vector<double>& row = prices.conversions.emplace_back();
    for (int cell = 0; cell < layouts * layouts && value % 2 == 0; ++cell) {
      row.push_back(cell % (layouts + 1) == 0 ? 0 : random.seconds());
    }
  }
  for (const auto* results : {&offered.graph().outputs, &offered.graph().kept}) {
    for (const ValueId value : *results) prices.results.push_back(value.index);
  }
  return prices;
}

// The node that is uncovered, or the placement.
template <class Choose>
std::pair<int, std::vector<int>> outcome_of(const Choose& choose) {
  try {
    return {kNoIndex, choose().chosen};
  } catch (const Uncovered& uncovered) {
    return {uncovered.node(), {}};
  }
}

void expect_equal(const PlacementSolution& left, const PlacementSolution& right) {
  EXPECT_EQ(left.placement.chosen, right.placement.chosen);
  EXPECT_EQ(left.seconds, right.seconds);
  EXPECT_EQ(left.lower_bound, right.lower_bound);
  EXPECT_EQ(left.networks, right.networks);
  EXPECT_EQ(left.work_cells, right.work_cells);
  ASSERT_EQ(left.conversions.size(), right.conversions.size());
  for (size_t index = 0; index < left.conversions.size(); ++index) {
    const PlacementConversion& one = left.conversions[index];
    const PlacementConversion& other = right.conversions[index];
    EXPECT_EQ(std::tuple(one.value, one.from, one.to),
              std::tuple(other.value, other.from, other.to));
  }
}

void expect_equal(const PlacementProblem& left, const PlacementProblem& right) {
  EXPECT_EQ(left.is_forbidden, right.is_forbidden);
  EXPECT_EQ(left.conversion_prices, right.conversion_prices);
  EXPECT_EQ(left.results, right.results);
  for (size_t index = 0; index < left.candidates.size(); ++index) {
    EXPECT_EQ(left.candidates[index].seconds, right.candidates[index].seconds);
    EXPECT_EQ(left.candidates[index].is_one_pass, right.candidates[index].is_one_pass);
  }
}

// Both ways to choose among the same offers.
class BothChoices {
 public:
  explicit BothChoices(unsigned seed)
      : random_(seed),
        offered_(random_),
        rules_{.follows_order = random_.one_in(4),
               .may_compile = random_.one_in(4),
               .keeps_sparse_storage = random_.one_in(8)},
        problem_(
            make_choice_problem(offered_.graph(), offered_.offers(), offered_.layouts(), rules_)),
        task_(problem_, std::nullopt, {}),
        placer_(offered_.graph(), offered_.offers(), offered_.layouts(),
                rules_.keeps_sparse_storage) {
    if (rules_.follows_order) placer_.follow_order();
    if (rules_.may_compile) placer_.allow_compiling();
  }

  void compare() {
    compare_state();
    if (random_.one_in(2)) compare_choices();
    if (random_.one_in(2)) compare_solutions();
    if (random_.one_in(2)) compare_choices();
    compare_descriptions();
  }

  // Changes the prices, the constraints, or what is preferred.
  void change() {
    const size_t count = offered_.offers().candidates.size();
    Constraints constraints = task_.constraints();
    switch (random_.below(6)) {
      case 0: {
        ChoicePrices prices = random_prices(random_, offered_);
        placer_.set_prices(prices);
        return renew(ChoiceTask(problem_, std::move(prices), constraints));
      }
      case 1: {
        if (count == 0 || !random_.one_in(2)) return;
        const int failed = random_.below(static_cast<int>(count));
        placer_.forbid(failed);
        return renew(task_.with(with_failed(constraints, {failed}, count)));
      }
      case 2:
        constraints.excluded = random_.some(count, 5);
        placer_.exclude(constraints.excluded);
        return renew(task_.with(constraints));
      case 3:
        constraints.oversized = random_.some(count, 5);
        placer_.exclude_oversized(constraints.oversized);
        return renew(task_.with(constraints));
      case 4:
        placer_.exclude({});
        placer_.exclude_oversized({});
        return renew(task_.with({.failed = constraints.failed}));
      case 5:
        preferred_ = seen_.empty() || random_.one_in(4)
                         ? Placement{}
                         : seen_[at(random_.below(static_cast<int>(seen_.size())))];
        placer_.prefer(preferred_);
    }
  }

 private:
  // The solution of another task counts for descriptions until the new task is solved.
  void renew(ChoiceTask task) {
    task_ = std::move(task);
    solution_.reset();
  }

  void compare_state() {
    EXPECT_EQ(task_.forbidden(), placer_.forbidden());
    expect_equal(task_.placement_problem(), placer_.usable_problem());
    EXPECT_EQ(task_.conversion_prices(), placer_.conversion_prices());
    for (size_t index = 0; index < offered_.offers().candidates.size(); ++index) {
      const int candidate = static_cast<int>(index);
      EXPECT_EQ(task_.candidate_seconds(candidate), placer_.candidate_seconds(candidate));
    }
    EXPECT_EQ(is_usable(task_, preferred_), placer_.is_usable(placer_.preferred()));
  }

  void compare_choices() {
    see(in_order(task_), placer_.in_order());
    see(greedy(task_), placer_.greedy());
    for (int backend = 0; backend < kBackends; ++backend) {
      see(single_backend(task_, backend), placer_.single_backend(backend));
      see(unsplit(task_, backend), placer_.unsplit(backend));
    }
    const auto chosen = outcome_of([&] {
      const Choice choice = choose(task_, preferred_, solution_);
      if (choice.solution) newest_ = *(solution_ = choice.solution);
      return choice.placement;
    });
    EXPECT_EQ(chosen, outcome_of([&] { return placer_.choose(); }));
    if (chosen.first == kNoIndex) {
      seen_.push_back({chosen.second});
    } else if (!solution_) {
      newest_ = *(solution_ = solve(task_));  // `placer_` has kept it
    }
    expect_equal(newest_.found, placer_.solution());
  }

  void compare_solutions() {
    if (!solution_) newest_ = *(solution_ = solve(task_));
    see(solution_->found.placement, placer_.solve());
    see(solved_or_greedy(task_, *solution_), placer_.solve_or_greedy());
    see(solve_or_greedy(task_).placement, placer_.solve_or_greedy());
    expect_equal(newest_.found, placer_.solution());
  }

  void see(const Placement& placement, const Placement& reference) {
    EXPECT_EQ(placement.chosen, reference.chosen);
    if (!placement.chosen.empty()) seen_.push_back(placement);
  }

  void compare_descriptions() {
    for (const Placement& placement : seen_) {
      EXPECT_EQ(is_usable(task_, placement), placer_.is_usable(placement));
      EXPECT_EQ(price(task_, placement), placer_.price(placement));
      EXPECT_EQ(build_seconds(task_, placement), placer_.build_seconds(placement));
      EXPECT_EQ(amortized_build_seconds(task_, placement),
                placer_.amortized_build_seconds(placement));
      const auto gain = compilation_gain(task_, placement);
      const auto reference = placer_.compilation_gain(placement);
      ASSERT_EQ(gain.has_value(), reference.has_value());
      if (gain) {
        EXPECT_EQ(gain->seconds_per_run, reference->seconds_per_run);
        EXPECT_EQ(gain->compile_seconds, reference->compile_seconds);
      }
      compare_description(placement);
    }
    const auto found = margins(task_, newest_, kMarginSeconds);
    const auto reference = placer_.margins(kMarginSeconds);
    ASSERT_EQ(found.size(), reference.size());
    for (size_t index = 0; index < found.size(); ++index) {
      EXPECT_EQ(found[index].behind_seconds, reference[index].behind_seconds);
      EXPECT_EQ(found[index].ahead_seconds, reference[index].ahead_seconds);
    }
  }

  void compare_description(const Placement& placement) {
    const PlacementDescription left = describe(task_, {placement, newest_});
    const PlacementDescription right = placer_.describe(placement);
    EXPECT_EQ(left.predicted_seconds, right.predicted_seconds);
    EXPECT_EQ(left.build_seconds, right.build_seconds);
    EXPECT_EQ(left.lower_bound_seconds, right.lower_bound_seconds);
    EXPECT_EQ(left.is_proven_optimal, right.is_proven_optimal);
    EXPECT_EQ(left.gap, right.gap);
  }

  Random random_;
  RandomOffers offered_;
  ChoiceRules rules_;
  ChoiceProblem problem_;
  ChoiceTask task_;
  ReferencePlacer placer_;
  Placement preferred_;
  std::optional<ChoiceSolution> solution_;  // of `task_`
  ChoiceSolution newest_;                   // perhaps of a former task
  std::vector<Placement> seen_;
};

TEST(ReferencePlacer, ChoosesTheSame) {
  for (unsigned seed = 0; seed < kProblems && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BothChoices both(seed);
    for (int step = 0; step < kSteps; ++step) {
      both.compare();
      both.change();
    }
  }
}

}  // namespace
}  // namespace tessera
