// Tests a step with branches: which branch runs, where its memory is, and what explain_violation()
// finds.
#include "engine/step_program.h"

#include "base/matchers_test.h"
#include "engine/shared_views_test.h"

namespace tessera {
namespace {

using testing_plugins::Kind;
using testing_plugins::open_mirror;
using testing_plugins::plus_one;
using testing_plugins::Proposals;
using testing_plugins::SharedViews;

// Builds the plan of one branch.
class Branch : public SharedViews {
 public:
  using SharedViews::build;
  using SharedViews::input;
  using SharedViews::relu;
  void output(const std::string& name) { builder_.output(name); }

 private:
  void TestBody() override {}
};

// A placeholder for a step with branches. Its workspace is as large as the branches need.
plugin::Candidate branching(const plugin::Node& node, int64_t workspace_bytes) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.workspace_bytes = workspace_bytes;
  candidate.build = [](const plugin::BuildOptions&) {
    return plugin::make_kernel([](auto&, auto, auto) {
      throw plugin::Failure(TESSERA_INTERNAL, "a step with branches has no kernel");
    });
  };
  return candidate;
}

// y = condition ? x + 4 : other, z = y + 1, with branches of one and no steps.
class BranchSteps : public SharedViews {
 protected:
  BranchSteps() {
    first_.input("outer x", {3});
    first_.relu("outer x", "a");
    first_.relu("a", "b");
    first_.relu("b", "c");
    first_.relu("c", "y of first");
    first_.output("y of first");
    second_.input("outer other", {3});
    second_.output("outer other");
    for (Branch* branch : {&first_, &second_}) built_branches_.push_back(branch->build({}));
  }

  BuiltPlan build_whole() {
    builder_.input("condition", Type::tensor(DataType::Bool, Shape{}));
    input("other", {3});
    input("x", {3});
    relu("x", "before");
    builder_.node("choose", "Where", {"condition", "before", "other"}, {"y"});
    relu("y", "z");
    builder_.output("z");
    BuiltPlan built;
    built.graph = infer_types(builder_.graph(), registry_, Log());
    built.registry = &registry_;
    const int64_t workspace_bytes = built_branches_[0].plan.arena_bytes;
    built.plugins = {open_mirror([=](const plugin::Graph& graph, Proposals& proposals) {
      for (int32_t id = 0; id < graph.node_count(); ++id) {
        const plugin::Node node = graph.node(id);
        proposals.add(node.op() == "Where" ? branching(node, workspace_bytes) : plus_one(node, {}));
      }
    })};
    built.layouts = std::make_shared<const LayoutTable>(built.plugins);
    const tessera_graph view(built.graph, registry_);
    built.offers = collect_offers(view, built.plugins, *built.layouts, {});
    built.plan = make_plan(built.graph, built.offers, {.chosen = {0, 1, 2}}, *built.layouts, {});
    built.branches.resize(built.plan.steps.size());
    for (size_t index = 0; index < built.plan.steps.size(); ++index) {
      ExecutionStep& step = built.plan.steps[index];
      built.kernels.push_back(std::make_shared<const tessera::Kernel>(
          built.offers.candidates[static_cast<size_t>(step.candidate)].build(1)));
      if (step.candidate != 1) continue;
      step.kind = Kind::Branch;
      // The ports are condition, before, other.
      step.branches = {{.plan = built_branches_[0].plan, .inputs = {1}},
                       {.plan = built_branches_[1].plan, .inputs = {2}}};
      built.branches[index] = std::move(built_branches_);
      branch_ = index;
    }
    built.constant_results.resize(built.plan.results.size());
    EXPECT_EQ(explain_violation(built.plan), "");
    return built;
  }

  static Tensor truth(bool is_true) {
    Tensor tensor(DataType::Bool, {});
    *static_cast<bool*>(tensor.mutable_data()) = is_true;
    return tensor;
  }

  Branch first_;
  Branch second_;
  std::vector<BuiltPlan> built_branches_;
  size_t branch_ = 0;
};

TEST_F(BranchSteps, RunTheBranchThatTheConditionNames) {
  PlanRunner runner(build_whole(), 1);
  const Tensor other = counted({3}, 50);
  const Tensor x = counted({3}, 10);
  for (const bool is_true : {true, false, false, true}) {
    const Tensor z = runner.run(std::vector{truth(is_true), other, x})[0];
    // One before, four in the branch, one after.
    EXPECT_THAT(values(z), is_true ? ElementsAre(16, 17, 18) : ElementsAre(51, 52, 53));
  }
}

TEST_F(BranchSteps, LieInTheStepsWorkspace) {
  const BuiltPlan built = build_whole();
  const ExecutionStep& step = built.plan.steps[branch_];
  EXPECT_GT(step.workspace_bytes, 0);
  EXPECT_EQ(step.workspace_bytes, step.branches[0].plan.arena_bytes);
  EXPECT_EQ(built.plan.arena_bytes, built.plan.lower_bound_bytes);
  EXPECT_GE(built.plan.arena_bytes, step.workspace_bytes + 64);
}

TEST_F(BranchSteps, AreChecked) {
  const BuiltPlan built = build_whole();
  const struct {
    const char* expected;
    std::function<void(ExecutionStep&)> spoil;
  } cases[] = {
      {"has no branch", [](ExecutionStep& step) { step.branches.clear(); }},
      {"has branches, but is no such step",
       [](ExecutionStep& step) { step.kind = ExecutionStep::Kind::Kernel; }},
      {"which exceeds the workspace", [](ExecutionStep& step) { step.workspace_bytes -= 64; }},
      {"branch 0, which is wrong: step 0 reads",
       [](ExecutionStep& step) {
         ExecutionPlan& plan = step.branches[0].plan;
         plan.steps.erase(plan.steps.begin());
       }},
      {"reads input 0, which the step does not give it",
       [](ExecutionStep& step) { step.branches[1].inputs.clear(); }},
      {"reads input 0 in another form", [](ExecutionStep& step) { step.branches[1].inputs = {0}; }},
      {"has other results than the step",
       [](ExecutionStep& step) { step.branches[1].plan.results.clear(); }},
      {"runs on other threads than the step",
       [](ExecutionStep& step) { step.branches[0].plan.steps[0].threads = 1; }},
  };
  for (const auto& [expected, spoil] : cases) {
    ExecutionPlan plan = built.plan;
    spoil(plan.steps[branch_]);
    EXPECT_THAT(explain_violation(plan), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace tessera
