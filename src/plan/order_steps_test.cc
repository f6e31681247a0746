#include "plan/order_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/random_below_test.h"

namespace tessera {
namespace {

// A step that makes a block of `bytes` and reads the blocks of the steps that it waits for.
struct Made {
  std::vector<int> reads;
  int64_t bytes = 0;
  int64_t workspace_bytes = 0;
  bool is_in_place = false;  // over the first block that it reads
};

OrderProblem problem_of(const std::vector<Made>& made) {
  OrderProblem problem;
  for (size_t index = 0; index < made.size(); ++index) {
    const int own = static_cast<int>(index);
    OrderStep step{.after = made[index].reads,
                   .blocks = made[index].reads,
                   .workspace_bytes = made[index].workspace_bytes};
    step.blocks.push_back(own);
    if (made[index].is_in_place) step.in_place.push_back({made[index].reads[0], own});
    problem.steps.push_back(step);
    problem.block_bytes.push_back(made[index].bytes);
  }
  return problem;
}

OrderProblem random_problem(std::mt19937& random, int count) {
  std::vector<Made> made;
  for (int index = 0; index < count; ++index) {
    Made step{.bytes = random_below(random, 10),
              .workspace_bytes = random_below(random, 3) == 0 ? 4 : 0};
    for (int source = 0; source < index; ++source) {
      if (random_below(random, index) < 2) step.reads.push_back(source);
    }
    if (!step.reads.empty() && random_below(random, 3) == 0) {
      step.is_in_place = true;
      step.bytes = made[static_cast<size_t>(step.reads[0])].bytes;
    }
    made.push_back(step);
  }
  return problem_of(made);
}

// The lowest peak of all orders that begin with `order`, by exhaustive search.
int64_t min_of_all(const OrderProblem& problem, std::vector<int>& order) {
  if (order.size() == problem.steps.size()) return peak_of(problem, order);
  int64_t least = INT64_MAX;
  for (int step = 0; step < static_cast<int>(problem.steps.size()); ++step) {
    const auto has_run = [&](int other) {
      return std::find(order.begin(), order.end(), other) != order.end();
    };
    const std::vector<int>& after = problem.steps[static_cast<size_t>(step)].after;
    if (has_run(step) || !std::all_of(after.begin(), after.end(), has_run)) continue;
    order.push_back(step);
    least = std::min(least, min_of_all(problem, order));
    order.pop_back();
  }
  return least;
}

std::vector<int> given_order(const OrderProblem& problem) {
  std::vector<int> order(problem.steps.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(OrderSteps, OrdersWhatItIsGiven) {
  const struct {
    const char* name;
    std::vector<Made> made;
    std::vector<int> order;
    int64_t peak_bytes;
  } cases[] = {
      {"nothing", {}, {}, 0},
      {"a chain", {{{}, 4}, {{0}, 4}, {{1}, 4}}, {0, 1, 2}, 8},
      {"a chain in place", {{{}, 4}, {{0}, 4, 0, true}, {{1}, 4, 0, true}}, {0, 1, 2}, 4},
      // Both wide blocks are live at the same time, or one after the other.
      {"two branches that widen",
       {{{}, 1}, {{0}, 9}, {{0}, 9}, {{1}, 1}, {{2}, 1}, {{3, 4}, 1}},
       {0, 1, 3, 2, 4, 5},
       11},
      // As in Sethi and Ullman's algorithm: the branch that needs most memory runs first.
      {"a tree", {{{}, 1}, {{}, 8}, {{1}, 1}, {{0, 2}, 1}}, {1, 2, 0, 3}, 9},
      {"workspace counts", {{{}, 2}, {{}, 1, 9}, {{0, 1}, 1}}, {1, 0, 2}, 10},
      {"what is as good stays", {{{}, 1}, {{}, 1}, {{0, 1}, 1}}, {0, 1, 2}, 3},
  };
  for (const auto& [name, made, order, peak_bytes] : cases) {
    const StepOrder found = order_steps(problem_of(made));
    EXPECT_EQ(found.steps, order) << name;
    EXPECT_EQ(found.peak_bytes, peak_bytes) << name;
    EXPECT_TRUE(found.is_smallest) << name;
  }
}

TEST(OrderSteps, FindsTheLeastOfAllOrders) {
  std::mt19937 random(3);
  int lowered = 0;
  for (int round = 0; round < 400; ++round) {
    const OrderProblem problem = random_problem(random, 2 + random_below(random, 7));
    std::vector<int> none;
    const int64_t least = min_of_all(problem, none);
    const StepOrder found = order_steps(problem);
    ASSERT_EQ(explain_violation(problem, found.steps), "");
    ASSERT_EQ(found.peak_bytes, least) << "round " << round;
    EXPECT_EQ(peak_of(problem, found.steps), least);
    EXPECT_TRUE(found.is_smallest);
    if (least < peak_of(problem, given_order(problem))) ++lowered;
  }
  EXPECT_GT(lowered, 20) << "too few problems in which the order matters";
}

TEST(OrderSteps, IsNoWorseThanGivenWhereEffortEnds) {
  std::mt19937 random(4);
  int lowered = 0;
  for (int round = 0; round < 30; ++round) {
    const OrderProblem problem = random_problem(random, 60);
    const int64_t given = peak_of(problem, given_order(problem));
    for (const int64_t effort : {0, 20'000, 300'000}) {
      const StepOrder found = order_steps(problem, {.effort = effort});
      ASSERT_EQ(explain_violation(problem, found.steps), "");
      EXPECT_EQ(found.peak_bytes, peak_of(problem, found.steps));
      EXPECT_LE(found.peak_bytes, given);
      if (effort == 20'000 && found.peak_bytes < given) ++lowered;
      EXPECT_EQ(order_steps(problem, {.effort = effort}).steps, found.steps);
    }
  }
  EXPECT_GT(lowered, 20) << "the beam finds nothing";
}

TEST(OrderSteps, SaysWhatIsWrongWithAnOrder) {
  const OrderProblem problem = problem_of({{{}, 4}, {{0}, 4}});
  EXPECT_EQ(explain_violation(problem, {0, 1}), "");
  EXPECT_EQ(explain_violation(problem, {1, 0}), "step 1 runs before step 0");
  EXPECT_EQ(explain_violation(problem, {0, 0}), "step 0 comes twice");
  EXPECT_EQ(explain_violation(problem, {0, 7}), "step 7 is none");
  EXPECT_EQ(explain_violation(problem, {0}), "the order has not as many steps as there are");
}

}  // namespace
}  // namespace tessera
