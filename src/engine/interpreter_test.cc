#include "engine/interpreter.h"

#include <thread>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "ops/all_ops_test.h"

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

}  // namespace
}  // namespace tessera
