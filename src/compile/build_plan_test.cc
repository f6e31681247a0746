// Plans that were found before: PlanOptions::only_plan. Whole builds are tested through the API.
#include "compile/build_plan.h"

#include <gmock/gmock.h>

#include "backend/test_plugins.h"
#include "compile/known_plan.h"
#include "infer/infer.h"
#include "ops/graph_test.h"
#include "plan/memory_use.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_plugins::open_mirror;
using testing_plugins::relu_candidate;

class KnownPlans : public testing::Test {
 protected:
  KnownPlans() {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{2, 3}))
        .node("first", "Relu", {"x"}, {"a"})
        .node("second", "Relu", {"a"}, {"y"})
        .output("y");
    graph_ = infer_types(builder.graph(), registry_, Log());
    layouts_ = {"mirror:a", "row_major"};
    services_.plugins = {open_mirror([this](const plugin::Graph& graph, plugin::Proposals& offers) {
      for (const plugin::Node& node : graph.nodes()) {
        for (const std::string& layout : layouts_) offers.add(relu_candidate(node, layout));
      }
    })};
  }

  PlanResult found() {
    PlanOptions options;
    options.notes_plan = true;
    return std::get<PlanResult>(build_plan(graph_, options, services_));
  }

  BuildOutcome built_again(const tuning::KnownPlan& plan, int64_t budget_bytes = 0) {
    PlanOptions options;
    options.only_plan = plan;
    options.memory_budget_bytes = budget_bytes;
    return build_plan(graph_, options, services_);
  }

  std::string reason(const BuildOutcome& outcome) {
    const auto* const unbuildable = std::get_if<UnbuildablePlan>(&outcome);
    return unbuildable == nullptr ? "it was built" : unbuildable->reason;
  }

  ops::Registry registry_ = ops::make_registry();
  PackStore packs_;
  ThreadPool pool_{1};
  std::vector<std::string> stages_;
  BuildServices services_{
      .registry = registry_,
      .packs = packs_,
      .pool = pool_,
      .watcher = [this](const std::string& stage) { stages_.push_back(stage); }};
  std::vector<std::string> layouts_;
  Graph graph_;
};

TEST_F(KnownPlans, AreBuiltAsTheyWereFound) {
  const PlanResult first = found();
  ASSERT_EQ(first.plan.steps.size(), 2U);
  EXPECT_FALSE(first.is_known_plan);
  stages_.clear();
  const BuildOutcome outcome = built_again(first.plan);
  const auto* const again = std::get_if<PlanResult>(&outcome);
  ASSERT_NE(again, nullptr) << reason(outcome);
  EXPECT_TRUE(again->is_known_plan);
  EXPECT_EQ(again->plan, first.plan);
  EXPECT_THAT(stages_, ElementsAre("propose", "build", "plan", "pack")) << "nothing is chosen";
  EXPECT_EQ(again->built.plan.steps.size(), first.built.plan.steps.size());
  EXPECT_EQ(again->kernels, 2);
  EXPECT_TRUE(again->candidates.empty());
}

TEST_F(KnownPlans, SayWhichCandidateIsNoLongerOffered) {
  tuning::KnownPlan plan = found().plan;
  plan.steps.back().algorithm = "a better relu";
  EXPECT_THAT(reason(built_again(plan)), HasSubstr("no longer offers a better relu"));
}

TEST_F(KnownPlans, OfAnotherGraphAreNotBuilt) {
  tuning::KnownPlan plan = found().plan;
  plan.steps.pop_back();
  EXPECT_THAT(reason(built_again(plan)), HasSubstr("it is no plan of this graph: "));
}

TEST_F(KnownPlans, AreNotBuiltBeyondTheBudget) {
  const PlanResult first = found();
  const int64_t needed = memory_use(first.built.plan, first.built.offers).total_bytes();
  ASSERT_GT(needed, 1);
  EXPECT_EQ(reason(built_again(first.plan, needed)), "it was built");
  EXPECT_EQ(reason(built_again(first.plan, needed - 1)),
            "it needs " + std::to_string(needed) + " bytes of memory, more than the budget of " +
                std::to_string(needed - 1));
}

TEST_F(KnownPlans, EndWhenTheyAreNoLongerNeeded) {
  const PlanResult first = found();
  services_.check_wanted = [] {
    throw Error(ErrorKind::Cancelled, "the plan", "no longer needed");
  };
  EXPECT_THROW(built_again(first.plan), Error);
}

using WantedOffers = KnownPlans;

TEST_F(WantedOffers, AreForOneThreadIfEveryNodeIsAsShortAsTheTuningSays) {
  ThreadPool two(2);
  const BuildServices services{
      .registry = registry_, .packs = packs_, .pool = two, .plugins = services_.plugins};
  const auto threads = [&](double min_shared_seconds) {
    PlanOptions options;
    options.notes_plan = true;
    options.compile_tuning.min_shared_seconds_unpriced = min_shared_seconds;
    const auto result = std::get<PlanResult>(build_plan(graph_, options, services));
    return result.plan.steps.at(0).threads;
  };
  EXPECT_EQ(threads(CompileTuning().min_shared_seconds_unpriced), 1);
  EXPECT_EQ(threads(0), 2);
}

}  // namespace
}  // namespace tessera
