// Tests that the plan follows the choice: for the same graph, other kernels give another plan.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/arena_blocks.h"
#include "plan/execution_plan.h"

namespace tessera {
namespace {

constexpr uint32_t kWrite = TESSERA_REQUEST_WRITE;
constexpr uint32_t kInPlace = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;

using Kind = ExecutionStep::Kind;

// Builds a graph without nodes: planning needs only its values, and the candidates say who makes
// them.
class PlanMaker {
 public:
  ValueId value(const std::string& name, std::vector<int64_t> dims) {
    Shape shape;
    for (const int64_t dim : dims) shape.emplace_back(dim);
    graph_.values.push_back({.name = name, .type = Type::tensor(DataType::Float32, shape)});
    return {static_cast<int32_t>(graph_.values.size()) - 1};
  }

  ValueId input(const std::string& name, std::vector<int64_t> dims) {
    const ValueId made = value(name, std::move(dims));
    graph_.inputs.push_back(made);
    return made;
  }

  void output(ValueId value) { graph_.outputs.push_back(value); }

  // Adds a kernel from `inputs` to `output` to the end of the placement.
  Candidate& kernel(const std::vector<ValueId>& inputs, ValueId output) {
    Candidate candidate;
    for (const ValueId input : inputs) {
      candidate.inputs.push_back({.value = input, .layout = kDefaultLayout});
    }
    candidate.outputs.push_back({.value = output, .layout = kDefaultLayout});
    placement_.chosen.push_back(static_cast<int>(offers_.candidates.size()));
    offers_.candidates.push_back(std::move(candidate));
    return offers_.candidates.back();
  }

  ExecutionPlan plan() const {
    ExecutionPlan made = make_plan(graph_, offers_, placement_, LayoutTable({}), {});
    EXPECT_EQ(explain_violation(made), "");
    return made;
  }

 private:
  Graph graph_;
  Offers offers_;
  Placement placement_;
};

int count(const ExecutionPlan& plan, Kind kind) {
  int found = 0;
  for (const ExecutionStep& step : plan.steps) found += step.kind == kind ? 1 : 0;
  return found;
}

// x -> a -> b -> sum(b, a) -> y, each of 256 bytes: the residual sum of a block. `requests` says
// how the kernel of the sum may use the memory of b.
ExecutionPlan plan_residual(uint32_t requests) {
  PlanMaker maker;
  const ValueId x = maker.input("x", {64});
  const ValueId a = maker.value("a", {64});
  const ValueId b = maker.value("b", {64});
  const ValueId sum = maker.value("sum", {64});
  const ValueId y = maker.value("y", {64});
  maker.kernel({x}, a);
  maker.kernel({a}, b);
  Candidate& adding = maker.kernel({b, a}, sum);
  adding.outputs[0].requests = requests;
  adding.outputs[0].in_place_input = requests == kWrite ? -1 : 0;
  maker.kernel({sum}, y);
  maker.output(y);
  return maker.plan();
}

TEST(MakePlan, AResidualSumTakesNoBufferWhereItsKernelCanDoWithoutOne) {
  EXPECT_EQ(plan_residual(kWrite).arena_bytes, 3 * 256);
  for (const uint32_t requests : {kInPlace, uint32_t{TESSERA_REQUEST_ADD}}) {
    const ExecutionPlan plan = plan_residual(requests);
    EXPECT_EQ(plan.arena_bytes, 2 * 256);
    EXPECT_EQ(count(plan, Kind::Copy), 0);
    EXPECT_EQ(plan.lower_bound_bytes, plan.arena_bytes);
    EXPECT_TRUE(plan.is_smallest_arena);
  }
}

TEST(MakePlan, AWorkspaceIsLiveDuringItsStepAlone) {
  for (const int64_t workspace_bytes : {0, 100, 1000}) {
    PlanMaker maker;
    const ValueId x = maker.input("x", {64});
    const ValueId a = maker.value("a", {64});
    const ValueId b = maker.value("b", {64});
    const ValueId y = maker.value("y", {64});
    maker.kernel({x}, a);
    maker.kernel({a}, b).workspace_bytes = workspace_bytes;
    maker.kernel({b}, y).workspace_bytes = workspace_bytes;
    maker.output(y);
    const int64_t stored = (workspace_bytes + 63) / 64 * 64;
    EXPECT_EQ(maker.plan().arena_bytes, 2 * 256 + stored);
  }
}

CandidateOutput output_of(ValueId value, bool accepts_strides) {
  return {.value = value,
          .layout = kDefaultLayout,
          .alignment_bytes = 4,
          .accepts_strides = accepts_strides};
}

// Two kernels make the left and right half of the rows of `joint`, which another kernel reads.
ExecutionPlan plan_joint(bool accepts_strides) {
  PlanMaker maker;
  const ValueId x = maker.input("x", {8, 8});
  const ValueId left = maker.value("left", {8, 8});
  const ValueId right = maker.value("right", {8, 8});
  const ValueId joint = maker.value("joint", {8, 16});
  const ValueId y = maker.value("y", {8, 16});
  maker.kernel({x}, left).outputs[0] = output_of(left, accepts_strides);
  maker.kernel({x}, right).outputs[0] = output_of(right, accepts_strides);
  Candidate& join = maker.kernel({left, right}, joint);
  join.flags = TESSERA_CANDIDATE_JOINT;
  join.inputs[0].part = {.offset_bytes = 0, .strides = {16, 1}};
  join.inputs[1].part = {.offset_bytes = 32, .strides = {16, 1}};
  maker.kernel({joint}, y);
  maker.output(y);
  return maker.plan();
}

TEST(MakePlan, AConcatTakesNoCopiesWhereItsProducersWriteWithStrides) {
  const ExecutionPlan copied = plan_joint(false);
  EXPECT_EQ(count(copied, Kind::Copy), 2);
  // Each half is made and copied before the next one.
  EXPECT_EQ(copied.arena_bytes, 3 * 256);

  const ExecutionPlan direct = plan_joint(true);
  EXPECT_EQ(count(direct, Kind::Copy), 0);
  EXPECT_EQ(direct.arena_bytes, 2 * 256);
}

// One kernel makes rows. Two views are their left and right halves, which another kernel reads.
ExecutionPlan plan_split(bool accepts_strides) {
  PlanMaker maker;
  const ValueId x = maker.input("x", {8, 16});
  const ValueId whole = maker.value("whole", {8, 16});
  const ValueId left = maker.value("left", {8, 8});
  const ValueId right = maker.value("right", {8, 8});
  const ValueId sum = maker.value("sum", {8, 8});
  const ValueId y = maker.value("y", {8, 8});
  maker.kernel({x}, whole);
  Candidate& split = maker.kernel({whole}, left);
  split.flags = TESSERA_CANDIDATE_VIEW;
  split.outputs[0].part = {.offset_bytes = 0, .strides = {16, 1}};
  split.outputs.push_back({.value = right, .layout = kDefaultLayout});
  split.outputs[1].part = {.offset_bytes = 32, .strides = {16, 1}};
  Candidate& adding = maker.kernel({left, right}, sum);
  for (CandidateInput& port : adding.inputs) {
    port.accepts_strides = accepts_strides;
    port.alignment_bytes = 4;
  }
  maker.kernel({sum}, y);
  maker.output(y);
  return maker.plan();
}

TEST(MakePlan, ASplitTakesNoCopiesWhereItsReadersTakeStrides) {
  const ExecutionPlan copied = plan_split(false);
  EXPECT_EQ(count(copied, Kind::Copy), 2);
  EXPECT_EQ(copied.arena_bytes, 4 * 256);

  const ExecutionPlan direct = plan_split(true);
  EXPECT_EQ(count(direct, Kind::Copy), 0);
  EXPECT_EQ(direct.arena_bytes, 3 * 256);
}

// A later kernel reads `a` again, so a kernel that adds to `a` needs a copy first; a kernel that
// can also write to a separate output needs none.
TEST(MakePlan, WhatIsStillNeededIsCopiedBeforeAKernelAddsToIt) {
  for (const uint32_t requests : {kWrite, kInPlace, uint32_t{TESSERA_REQUEST_ADD}}) {
    PlanMaker maker;
    const ValueId x = maker.input("x", {64});
    const ValueId a = maker.value("a", {64});
    const ValueId sum = maker.value("sum", {64});
    const ValueId y = maker.value("y", {64});
    maker.kernel({x}, a);
    Candidate& adding = maker.kernel({a, x}, sum);
    adding.outputs[0].requests = requests;
    adding.outputs[0].in_place_input = requests == kWrite ? -1 : 0;
    maker.kernel({sum, a}, y);
    maker.output(y);
    const ExecutionPlan plan = maker.plan();
    EXPECT_EQ(count(plan, Kind::Copy), requests == TESSERA_REQUEST_ADD ? 1 : 0);
    EXPECT_EQ(plan.arena_bytes, 2 * 256);
  }
}

TEST(MakePlan, StepsRunInAnotherOrderWhereThatNeedsLess) {
  // Two branches that first widen and then narrow; the given order runs both wide kernels first.
  PlanMaker maker;
  const ValueId x = maker.input("x", {64});
  const ValueId y = maker.value("y", {64});
  std::vector<ValueId> wide;
  std::vector<ValueId> narrow;
  for (const char* name : {"left", "right"}) {
    wide.push_back(maker.value(std::string(name) + " wide", {1024}));
    narrow.push_back(maker.value(std::string(name) + " narrow", {64}));
    maker.kernel({x}, wide.back());
  }
  for (size_t index = 0; index < wide.size(); ++index) maker.kernel({wide[index]}, narrow[index]);
  maker.kernel(narrow, y);
  maker.output(y);
  const ExecutionPlan plan = maker.plan();
  std::vector<int> order;
  for (const ExecutionStep& step : plan.steps) order.push_back(step.candidate);
  EXPECT_EQ(order, (std::vector<int>{0, 2, 1, 3, 4}));
  EXPECT_EQ(plan.arena_bytes, 4096 + 2 * 256);
}

TEST(MakePlan, NoStepPassesOneWhoseSizesOnlyRunningShows) {
  PlanMaker maker;
  const ValueId x = maker.input("x", {64});
  const ValueId y = maker.value("y", {64});
  const ValueId indices = maker.value("indices", {64});
  std::vector<ValueId> wide;
  std::vector<ValueId> narrow;
  for (const char* name : {"left", "right"}) {
    wide.push_back(maker.value(std::string(name) + " wide", {1024}));
    narrow.push_back(maker.value(std::string(name) + " narrow", {64}));
    maker.kernel({x}, wide.back());
  }
  maker.kernel({x}, indices).outputs[0].is_size_unknown = true;
  for (size_t index = 0; index < wide.size(); ++index) maker.kernel({wide[index]}, narrow[index]);
  maker.kernel({narrow[0], narrow[1], indices}, y);
  maker.output(y);
  const ExecutionPlan plan = maker.plan();
  std::vector<int> order;
  for (const ExecutionStep& step : plan.steps) order.push_back(step.candidate);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  for (const ExecutionStep& step : plan.steps) {
    EXPECT_EQ(step.ends_static_segment, step.candidate == 2);
  }
  ExecutionPlan wrong = plan;
  wrong.steps[2].ends_static_segment = false;
  EXPECT_EQ(explain_violation(wrong), "step 2 does not end the segment whose sizes are known");
}

TEST(MakePlan, BlocksAreWhatTheArenaHolds) {
  const ExecutionPlan plan = plan_residual(kInPlace);
  const std::vector<ArenaBlock> blocks = arena_blocks(plan);
  ASSERT_EQ(blocks.size(), 2);
  EXPECT_EQ(blocks[0].lower, 0);
  EXPECT_EQ(blocks[0].upper, 3);
  EXPECT_EQ(blocks[1].lower, 1);
  EXPECT_EQ(blocks[1].upper, 4);
  EXPECT_EQ(value_bytes(plan).stored, 3 * 256);
  EXPECT_EQ(value_bytes(plan).logical, 3 * 256);
}

}  // namespace
}  // namespace tessera
