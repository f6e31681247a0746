// Plans that are made and run with plug-ins whose layouts are distinguishable: conversions,
// in-place outputs, outputs that are added to, watchers, failures.
#include "engine/plan_runner.h"

#include "backend/test_plugins.h"
#include "base/tensor/tensors_test.h"
#include "ops/graph_test.h"
#include "place/placement.h"

namespace tessera {
namespace {

using testing_plugins::adding_candidate;
using testing_plugins::Buffer;
using testing_plugins::MirrorBackend;
using testing_plugins::open_mirror;
using testing_plugins::Proposals;
using testing_plugins::relu_candidate;
using Kind = ExecutionStep::Kind;

class PlanRunners : public testing::Test {
 protected:
  // All values are float32 of three elements.
  tessera::Graph typed(const GraphBuilder& builder) {
    tessera::Graph graph = builder.graph();
    for (Value& value : graph.values) value.type = float_type(Shape{3});
    return graph;
  }

  // The plan in which every node takes its first candidate.
  BuiltPlan build(tessera::Graph graph, MirrorBackend::Propose propose,
                  std::vector<ValueId> also = {}) {
    BuiltPlan built;
    built.graph = std::move(graph);
    built.registry = &all_ops();
    built.plugins = {open_mirror(std::move(propose))};
    built.layouts = std::make_shared<const LayoutTable>(built.plugins);
    const tessera_graph view(built.graph, all_ops());
    built.offers = collect_offers(view, built.plugins, *built.layouts, {});
    Placement placement;
    for (size_t index = 0; index < built.offers.candidates.size(); ++index) {
      placement.chosen.push_back(static_cast<int>(index));
    }
    built.plan = make_plan(built.graph, built.offers, placement, *built.layouts, also);
    EXPECT_EQ(explain_violation(built.plan), "");
    for (const ExecutionStep& step : built.plan.steps) {
      built.kernels.push_back(
          step.kind == Kind::Kernel
              ? std::make_shared<const tessera::Kernel>(
                    built.offers.candidates[static_cast<size_t>(step.candidate)].build(1))
              : nullptr);
    }
    built.constant_results.resize(built.plan.results.size());
    return built;
  }

  static std::vector<Kind> kinds(const BuiltPlan& built) {
    std::vector<Kind> kinds;
    for (const ExecutionStep& step : built.plan.steps) kinds.push_back(step.kind);
    return kinds;
  }

  // One candidate for each Relu, whose input and output have this layout.
  static MirrorBackend::Propose relus_in(const std::string& layout, bool may_be_in_place = false) {
    return [=](const auto& graph, Proposals& proposals) {
      for (const plugin::Node& node : graph.nodes()) {
        proposals.add(relu_candidate(node, layout, may_be_in_place));
      }
    };
  }

  // x -> Relu -> y -> Relu -> z.
  tessera::Graph two_relus() {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(Shape{3}))
        .node("first", "Relu", {"x"}, {"y"})
        .node("second", "Relu", {"y"}, {"z"})
        .output("z");
    return typed(builder);
  }
};

TEST_F(PlanRunners, ConvertOnceIntoALayoutAndOnceBack) {
  PlanRunner runner(build(two_relus(), relus_in("mirror:a")), 1);
  EXPECT_THAT(kinds(runner.built()),
              ElementsAre(Kind::Convert, Kind::Kernel, Kind::Kernel, Kind::Convert));
  for (const float sign : {1.0F, -1.0F}) {
    const std::vector<Tensor> results =
        runner.run(std::vector{floats({sign, -2 * sign, 3 * sign})});
    EXPECT_THAT(values(results[0]), sign > 0 ? ElementsAre(1, 0, 3) : ElementsAre(0, 2, 0));
  }
}

// Each step adds the number of threads that it may use to its input.
plugin::Candidate thread_counting(const plugin::Node& node) {
  plugin::Candidate candidate = relu_candidate(node, TESSERA_LAYOUT_DEFAULT);
  candidate.build = [](const plugin::BuildOptions&) {
    return plugin::make_kernel([](plugin::RunContext& context, std::span<const Buffer> inputs,
                                  std::span<const Buffer> outputs) {
      const auto threads = static_cast<float>(context.threads());
      for (int64_t index = 0; index < inputs[0].elements(); ++index) {
        outputs[0].as<float>()[index] = 10 * inputs[0].as<float>()[index] + threads;
      }
    });
  };
  return candidate;
}

TEST_F(PlanRunners, RunStepsForOneThreadOnOne) {
  for (const bool is_first_single_threaded : {true, false}) {
    BuiltPlan built = build(two_relus(), [](const auto& graph, Proposals& proposals) {
      for (const plugin::Node& node : graph.nodes()) proposals.add(thread_counting(node));
    });
    built.plan.steps[is_first_single_threaded ? 0 : 1].threads = 1;
    PlanRunner runner(std::move(built), 3);
    size_t watched = 0;
    const std::vector<Tensor> results =
        runner.run(std::vector{floats({0, 0, 0})}, [&](const PlanEvent&) { ++watched; });
    EXPECT_EQ(values(results[0])[0], is_first_single_threaded ? 13 : 31);
    EXPECT_EQ(watched, 2U);
  }
}

TEST_F(PlanRunners, GoDirectlyBetweenLayoutsWhereThereIsAWay) {
  const auto in_layouts = [](const std::string& first, const std::string& second) {
    return [=](const auto& graph, Proposals& proposals) {
      proposals.add(relu_candidate(graph.node(0), first));
      proposals.add(relu_candidate(graph.node(1), second));
    };
  };
  const BuiltPlan direct = build(two_relus(), in_layouts("mirror:a", "mirror:b"));
  EXPECT_THAT(kinds(direct),
              ElementsAre(Kind::Convert, Kind::Kernel, Kind::Convert, Kind::Kernel, Kind::Convert));
  const BuiltPlan through_default = build(two_relus(), in_layouts("mirror:b", "mirror:a"));
  EXPECT_EQ(through_default.plan.steps.size(), 6U);
}

TEST_F(PlanRunners, ShareOneConvertedCopy) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{3}))
      .node("first", "Relu", {"x"}, {"y"})
      .node("second", "Relu", {"x"}, {"z"})
      .output("y")
      .output("z");
  const BuiltPlan built = build(typed(builder), relus_in("mirror:a"));
  // One result is converted back before the other is made, so one buffer less is live at the same
  // time.
  EXPECT_THAT(kinds(built),
              ElementsAre(Kind::Convert, Kind::Kernel, Kind::Convert, Kind::Kernel, Kind::Convert));
}

TEST_F(PlanRunners, WriteInPlaceWhereTheInputIsNotNeededAnyMore) {
  const auto in_place = relus_in("mirror:a", true);
  const BuiltPlan built = build(two_relus(), in_place);
  EXPECT_EQ(built.plan.steps[1].outputs[0].request, TESSERA_REQUEST_IN_PLACE);
  EXPECT_EQ(built.plan.steps[2].outputs[0].request, TESSERA_REQUEST_IN_PLACE);
  EXPECT_EQ(built.plan.arena_bytes, 64);
  // The value in between is requested too, so it must be kept.
  const BuiltPlan kept = build(two_relus(), in_place, {{1}});
  EXPECT_EQ(kept.plan.steps[2].outputs[0].request, TESSERA_REQUEST_WRITE);
}

TEST_F(PlanRunners, GiveNothingForNothing) {
  tessera::Graph empty = two_relus();
  for (Value& value : empty.values) value.type = float_type(Shape{0});
  PlanRunner runner(build(std::move(empty), relus_in("mirror:a", true)), 1);
  const std::vector<Tensor> results = runner.run(std::vector{Tensor(DataType::Float32, {0})});
  EXPECT_EQ(results[0].dims(), std::vector<int64_t>{0});
}

// x -> Relu -> y; Add(x, y) -> z; if `keeps_y`, y is an output too.
TEST_F(PlanRunners, CopyBeforeAddingToWhatIsStillNeeded) {
  for (const bool keeps_y : {false, true}) {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(Shape{3}))
        .node("relu", "Relu", {"x"}, {"y"})
        .node("add", "Add", {"x", "y"}, {"s"})
        .node("last", "Relu", {"s"}, {"z"})
        .output("z");
    if (keeps_y) builder.output("y");
    PlanRunner runner(build(typed(builder),
                            [](const auto& graph, Proposals& proposals) {
                              proposals.add(relu_candidate(graph.node(0), TESSERA_LAYOUT_DEFAULT));
                              proposals.add(adding_candidate(graph.node(1)));
                              proposals.add(relu_candidate(graph.node(2), TESSERA_LAYOUT_DEFAULT));
                            }),
                      1);
    const std::vector<Kind> steps = kinds(runner.built());
    EXPECT_EQ(std::count(steps.begin(), steps.end(), Kind::Copy), keeps_y ? 1 : 0);
    const std::vector<Tensor> results = runner.run(std::vector{floats({1, -2, 3})});
    EXPECT_THAT(values(results[0]), ElementsAre(2, 0, 6));
    if (keeps_y) {
      EXPECT_THAT(values(results[1]), ElementsAre(1, 0, 3));
    }
  }
}

TEST_F(PlanRunners, LeaveInputsAndEarlierResultsAlone) {
  PlanRunner runner(build(two_relus(), relus_in("row_major", true)), 1);
  const Tensor input = floats({1, -2, 3});
  const std::vector<Tensor> first = runner.run(std::vector{input});
  runner.run(std::vector{floats({7, 8, 9})});
  EXPECT_THAT(values(input), ElementsAre(1, -2, 3));
  EXPECT_THAT(values(first[0]), ElementsAre(1, 0, 3));
}

TEST_F(PlanRunners, TakeInputsThatAreNotAligned) {
  PlanRunner runner(build(two_relus(), relus_in("row_major")), 1);
  const Tensor storage = floats({4}, {9, 1, -2, 3});
  const Tensor shifted(DataType::Float32, {3}, nullptr, storage.as<float>().data() + 1);
  EXPECT_THAT(values(runner.run(std::vector{shifted})[0]), ElementsAre(1, 0, 3));
}

TEST_F(PlanRunners, TellWatchersAndLetThemChangeOutputs) {
  PlanRunner runner(build(two_relus(), relus_in("row_major")), 1);
  std::vector<size_t> seen;
  const auto results = runner.run(std::vector{floats({1, 2, 3})}, [&](const PlanEvent& event) {
    seen.push_back(event.step);
    if (event.step == 0) static_cast<float*>(event.outputs[0].data)[1] = 50;
  });
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_THAT(values(results[0]), ElementsAre(1, 50, 3));
}

TEST_F(PlanRunners, TakeViewsWithoutAKernel) {
  PlanRunner runner(build(two_relus(),
                          [](const auto& graph, Proposals& proposals) {
                            plugin::Candidate view = relu_candidate(graph.node(0), "row_major");
                            view.flags = TESSERA_CANDIDATE_VIEW;
                            proposals.add(std::move(view));
                            proposals.add(relu_candidate(graph.node(1), "row_major"));
                          }),
                    1);
  EXPECT_THAT(kinds(runner.built()), ElementsAre(Kind::View, Kind::Kernel));
  EXPECT_THAT(values(runner.run(std::vector{floats({1, -2, 3})})[0]), ElementsAre(1, 0, 3));
}

TEST_F(PlanRunners, NameTheNodeAndTheBackendOfAFailure) {
  PlanRunner runner(build(two_relus(),
                          [](const auto& graph, Proposals& proposals) {
                            proposals.add(relu_candidate(graph.node(0), "row_major"));
                            plugin::Candidate broken = relu_candidate(graph.node(1), "row_major");
                            broken.build = [](const plugin::BuildOptions&) {
                              return plugin::make_kernel([](auto&, auto, auto) {
                                throw plugin::Failure(TESSERA_DEVICE_FAILED, "it melted");
                              });
                            };
                            proposals.add(std::move(broken));
                          }),
                    1);
  const std::string message = error_of([&] { runner.run(std::vector{floats({1, 2, 3})}); });
  EXPECT_THAT(message, HasSubstr("node 'second' (Relu)"));
  EXPECT_THAT(message, HasSubstr("backend 'mirror' failed: it melted"));
}

TEST(ExplainViolation, OfPlansSaysWhatIsWrong) {
  ExecutionPlan plan;
  plan.arena_bytes = 128;
  const auto arena = [&](int64_t offset) {
    plan.buffers.push_back({.bytes = 64, .offset = offset});
    return static_cast<int>(plan.buffers.size()) - 1;
  };
  plan.buffers.push_back({.kind = PlanBuffer::Kind::Input, .bytes = 64});
  const int one = arena(0);
  const int two = arena(64);
  const int over_one = arena(32);
  plan.buffers.push_back({.kind = PlanBuffer::Kind::Output, .bytes = 64});
  const int result = static_cast<int>(plan.buffers.size()) - 1;
  ExecutionStep first;
  first.inputs = {0};
  first.outputs = {{one}};
  ExecutionStep second;
  second.inputs = {one};
  second.outputs = {{two}};
  ExecutionStep last;
  last.inputs = {two};
  last.outputs = {{result}};
  plan.steps = {first, second, last};
  plan.results = {result};
  EXPECT_EQ(explain_violation(plan), "");
  ExecutionPlan wrong = plan;
  wrong.steps = {second, first, last};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("reads buffer 1 unwritten"));
  wrong = plan;
  wrong.steps[1].outputs = {{over_one}};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("over what it reads"));
  wrong = plan;
  wrong.steps[0].outputs = {{0}};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("not its own"));
  wrong = plan;
  wrong.steps[1].workspace_bytes = 8;
  EXPECT_THAT(explain_violation(wrong), HasSubstr("workspace over what it reads"));
  wrong = plan;
  wrong.steps[1].outputs = {{two, TESSERA_REQUEST_ADD}};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("holds nothing"));
  wrong = plan;
  wrong.results = {over_one};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("result buffer 3 is unwritten"));
  wrong = plan;
  wrong.results = {two};
  EXPECT_THAT(explain_violation(wrong), HasSubstr("is in the arena"));
  wrong = plan;
  wrong.arena_bytes = 100;
  EXPECT_THAT(explain_violation(wrong), HasSubstr("buffer 2 lies outside of memory"));
}

}  // namespace
}  // namespace tessera
