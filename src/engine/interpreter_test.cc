#include "engine/interpreter.h"

#include <thread>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "infer/infer.h"
#include "ops/all_ops_test.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

Type known_float_type(const std::vector<int64_t>& dims) {
  return Type::tensor(DataType::Float32, shape_from(dims));
}

// x -> Softmax -> y -> Softmax -> z.
Graph two_softmaxes(const Type& type) {
  Graph graph;
  const ValueId x = add_value(graph, {.name = "x", .type = type});
  const ValueId y = add_value(graph, {.name = "y", .type = type});
  const ValueId z = add_value(graph, {.name = "z", .type = type});
  for (const auto& [name, input, output] :
       {std::tuple("first", x, y), std::tuple("second", y, z)}) {
    Node node;
    node.name = name;
    node.op = "Softmax";
    node.version = 13;
    node.attributes.set("axis", int64_t{-1});
    node.inputs = {input};
    node.outputs = {output};
    graph.nodes.push_back(node);
  }
  graph.inputs = {x};
  graph.outputs = {z};
  return graph;
}

TEST(Interpreter, GivesOutputsThenKeptValues) {
  Graph graph = two_softmaxes(known_float_type({1, 2}));
  graph.kept = {{1}};
  Interpreter interpreter(graph, all_ops(), 1);
  const Tensor input(floats({1, 2}, {3, 3}));
  const std::vector<Tensor> results = interpreter.run(std::vector<Tensor>{input});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_THAT(values(results[0]), ElementsAre(0.5F, 0.5F));
  EXPECT_THAT(values(results[1]), ElementsAre(0.5F, 0.5F));
}

TEST(Interpreter, AsksTheRuleAgainWhereATypeIsUnknownBeforeRunning) {
  Graph graph = two_softmaxes(Type::tensor(DataType::Float32));
  graph.values[0].type = known_float_type({1, 2});
  Interpreter interpreter(graph, all_ops(), 1);
  const Tensor input(floats({1, 2}, {3, 3}));
  EXPECT_EQ(interpreter.run(std::vector<Tensor>{input})[0].dims(), (std::vector<int64_t>{1, 2}));
}

TEST(Interpreter, RefusesAGraphLargerThanTheMachineBeforeAllocating) {
  EXPECT_NE(error_of(ErrorKind::OutOfMemory,
                     [&] {
                       const Interpreter interpreter(
                           two_softmaxes(known_float_type({int64_t{1} << 50})), all_ops(), 1);
                     }),
            "");
}

TEST(Interpreter, AWatcherSeesEveryStepAndMayReplaceOutputs) {
  Interpreter interpreter(two_softmaxes(known_float_type({1, 2})), all_ops(), 1);
  const Tensor input(floats({1, 2}, {3, 3}));
  std::vector<std::string> seen;
  const auto watcher = [&](const StepEvent& event) {
    seen.push_back(event.node.name);
    if (event.node.name == "first") {
      event.outputs[0] = floats({1, 2}, {1000, 0});
    }
    return true;
  };
  const std::vector<Tensor> results = interpreter.run(std::vector<Tensor>{input}, watcher);
  EXPECT_THAT(seen, ElementsAre("first", "second"));
  EXPECT_THAT(values(results[0]), ElementsAre(1.0F, 0.0F));
  int steps = 0;
  const auto ends_it = [&](const StepEvent&) { return ++steps < 1; };
  EXPECT_TRUE(interpreter.run(std::vector<Tensor>{input}, ends_it).empty());
  EXPECT_EQ(steps, 1);
}

TEST(Interpreter, TwoInTwoThreadsShareConstants) {
  Graph graph = two_softmaxes(known_float_type({1, 2}));
  graph.values[0].constant = floats({1, 2}, {3, 3});
  graph.inputs.clear();
  Interpreter first(graph, all_ops(), 2);
  Interpreter second(graph, all_ops(), 2);
  EXPECT_EQ(first.graph().values[0].constant.data(), second.graph().values[0].constant.data());
  std::vector<float> first_result;
  std::vector<float> second_result;
  std::thread first_thread([&] { first_result = values(first.run({})[0]); });
  std::thread second_thread([&] { second_result = values(second.run({})[0]); });
  first_thread.join();
  second_thread.join();
  EXPECT_EQ(first_result, second_result);
}

// --- Nested graphs -------------------------------------------------------------------------------

// If `flag`: y is `x` plus `step` in each of `count` iterations of a loop that collects all sums in
// `all`. Else y is `x`, and `all` is `x` with a first axis of one element. The loop reads `step`
// through the branch.
Graph loop_in_a_branch(bool is_growing) {
  const Type flag = Type::tensor(DataType::Bool, Shape{});
  const Type number = Type::tensor(DataType::Int64, Shape{});
  GraphBuilder outer(all_ops());
  outer.input("flag", flag)
      .input("count", number)
      .input("x", Type::tensor(DataType::Float32, Shape{Dim::symbol("batch")}))
      .input("shift", Type::tensor(DataType::Float32, Shape{1}))
      .constant("two", floats({2}))
      .node("step", "Mul", {"shift", "two"})
      .node("branches", "If", {"flag"}, {"y", "all"})
      .node("result", "Neg", {"y"})
      .output("result")
      .output("all");

  GraphBuilder branch(all_ops());
  branch.capture(outer.value("count"), "count")
      .capture(outer.value("x"), "x")
      .capture(outer.value("step"), "step")
      .node("loop", "Loop", {"count", "", "x"}, {"y", "all"})
      .output("y")
      .output("all");

  GraphBuilder body(all_ops());
  body.capture(branch.value("step"), "step");
  body.input("iteration", number)
      .input("goes_on", flag)
      .input("sum", Type::tensor(DataType::Float32));
  body.node("next", "Add", {"sum", "step"});
  if (is_growing) {
    body.node("longer", "Concat", {"next", "next"}, attributes_of({{"axis", 0}}));
  }
  const std::string next = is_growing ? "longer" : "next";
  body.output("goes_on").output(next).output(next);

  GraphBuilder other(all_ops());
  other.capture(outer.value("x"), "x")
      .constant("axes", ints({0}))
      .node("all", "Unsqueeze", {"x", "axes"})
      .output("x")
      .output("all");

  Graph graph = branch.graph();
  graph.nodes[0].bodies.push_back({"body", body.graph()});
  Graph whole = outer.graph();
  whole.nodes[1].bodies.push_back({"then_branch", std::move(graph)});
  whole.nodes[1].bodies.push_back({"else_branch", other.graph()});
  EXPECT_EQ(explain_illegal(whole), "");
  return infer_types(whole, all_ops(), Log());
}

std::vector<Tensor> loop_arguments(bool flag, int64_t count) {
  return {bools({}, {static_cast<uint8_t>(flag ? 1 : 0)}), ints({}, {count}), floats({1, 2}),
          floats({5})};
}

TEST(Interpreter, RunsALoopInABranchWithItsCaptures) {
  Interpreter interpreter(loop_in_a_branch(false), all_ops(), 2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto looped = interpreter.run(loop_arguments(true, 3));
    EXPECT_THAT(values(looped[0]), ElementsAre(-31, -32));
    EXPECT_THAT(looped[1].dims(), ElementsAre(3, 2));
    EXPECT_THAT(values(looped[1]), ElementsAre(11, 12, 21, 22, 31, 32));

    const auto other = interpreter.run(loop_arguments(false, 3));
    EXPECT_THAT(values(other[0]), ElementsAre(-1, -2));
    EXPECT_THAT(other[1].dims(), ElementsAre(1, 2));
  }
  // The captured `step` of the next run counts.
  std::vector<Tensor> arguments = loop_arguments(true, 1);
  arguments[3] = floats({10});
  EXPECT_THAT(values(interpreter.run(arguments)[0]), ElementsAre(-21, -22));
}

TEST(Interpreter, ALoopWithoutAnIterationGivesItsFirstValue) {
  Interpreter interpreter(loop_in_a_branch(false), all_ops(), 1);
  const auto results = interpreter.run(loop_arguments(true, 0));
  EXPECT_THAT(values(results[0]), ElementsAre(-1, -2));
  EXPECT_EQ(results[1].dims().front(), 0);
}

TEST(Interpreter, AnErrorInNestedGraphsSaysWhereItIs) {
  Interpreter interpreter(loop_in_a_branch(true), all_ops(), 1);
  const auto once = interpreter.run(loop_arguments(true, 1));
  EXPECT_THAT(values(once[0]), ElementsAre(-11, -12, -11, -12));
  EXPECT_THAT(
      error_of(ErrorKind::InvalidArgument, [&] { interpreter.run(loop_arguments(true, 2)); }),
      HasSubstr("node 'branches' (If), then_branch, node 'loop' (Loop): expected elements "
                "of 4 for output 1, as in earlier iterations, found 8 in iteration 1"));
}

}  // namespace
}  // namespace tessera
