#include "rewrite/passes.h"
#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class UnrollLoops : public PassTest {
 protected:
  // y, all = Loop: v = v + i + w, of which `all` has each; w is captured.
  Graph loop(int64_t count, bool is_known = true) {
    GraphBuilder outer = builder();
    outer.input("x", float_type(Shape{2})).input("w", float_type(Shape{2}));
    if (is_known) {
      outer.constant("n", Tensor::from<int64_t>(DataType::Int64, {}, std::vector<int64_t>{count}));
    } else {
      outer.input("n", Type::tensor(DataType::Int64, Shape{}));
    }
    Graph graph = outer.graph();
    GraphBuilder inside = builder();
    inside.input("i", Type::tensor(DataType::Int64, Shape{}))
        .input("go", Type::tensor(DataType::Bool, Shape{}))
        .input("v", float_type(Shape{2}))
        .input("w", float_type(Shape{2}))
        .node("go_on", "Identity", {"go"}, {"goes_on"})
        .node("number", "Cast", {"i"}, {"number"}, attributes_of({{"to", 1}}))
        .node("add", "Sum", {"v", "number", "w"}, {"next"})
        .output("goes_on")
        .output("next")
        .output("next");
    Node node;
    node.name = "repeat";
    node.op = "Loop";
    node.version = 16;
    node.inputs = {find_value(graph, "n"), ValueId{}, find_value(graph, "x")};
    node.bodies = {{"body", captured(inside.graph(), graph)}};
    return finish(std::move(graph), std::move(node));
  }

  // y, all = Scan: v = v + e * w, of which `all` has each; from the last element e of x to the
  // first.
  Graph scan() {
    GraphBuilder outer = builder();
    outer.input("v0", float_type(Shape{2}))
        .input("x", float_type(Shape{2, 3}))
        .input("w", float_type(Shape{2}));
    Graph graph = outer.graph();
    GraphBuilder inside = builder();
    inside.input("v", float_type(Shape{2}))
        .input("e", float_type(Shape{2}))
        .input("w", float_type(Shape{2}))
        .node("product", "Mul", {"e", "w"}, {"scaled"})
        .node("add", "Add", {"v", "scaled"}, {"next"})
        .output("next")
        .output("next");
    Node node;
    node.name = "repeat";
    node.op = "Scan";
    node.version = 16;
    node.attributes.set("num_scan_inputs", int64_t{1});
    node.attributes.set("scan_input_axes", std::vector<int64_t>{-1});
    node.attributes.set("scan_input_directions", std::vector<int64_t>{1});
    node.attributes.set("scan_output_axes", std::vector<int64_t>{1});
    node.attributes.set("scan_output_directions", std::vector<int64_t>{1});
    node.inputs = {find_value(graph, "v0"), find_value(graph, "x")};
    node.bodies = {{"body", captured(inside.graph(), graph)}};
    return finish(std::move(graph), std::move(node));
  }

  // With a random node that nothing reads.
  static Graph with_coin(Graph graph) {
    Graph& body = graph.nodes.back().bodies[0].graph;
    Node coin;
    coin.name = coin.op = "Coin";
    coin.version = 1;
    coin.inputs = {find_value(body, "v")};
    coin.outputs = {add_value(body, {.name = "coin"})};
    body.nodes.push_back(std::move(coin));
    return graph;
  }

 private:
  static Graph captured(Graph body, const Graph& outer) {
    const ValueId inner = find_value(body, "w");
    std::erase(body.inputs, inner);
    body.captures = {{find_value(outer, "w"), inner}};
    return body;
  }

  Graph finish(Graph graph, Node node) {
    graph.outputs = {add_value(graph, {.name = "y"}), add_value(graph, {.name = "all"})};
    node.outputs = graph.outputs;
    graph.nodes.push_back(std::move(node));
    return infer_types(graph, registry_, log_);
  }
};

TEST_F(UnrollLoops, ALoopOfAFewIterationsBecomesItsNodes) {
  const Graph result = run(unroll_loops, loop(2));
  EXPECT_THAT(changes_, testing::Contains("node 'repeat' (Loop) unrolled into 2 iterations"));
  EXPECT_EQ(std::ranges::count(result.nodes, std::string("Sum"), &Node::op), 2);
  EXPECT_EQ(std::ranges::count(result.nodes, std::string("Cast"), &Node::op), 0)
      << "the numbers of iterations are folded";
  EXPECT_EQ(text(result[result.outputs[1]].type), "float32 2x2");
  const std::vector<Tensor> outputs =
      outputs_of(result, {{"x", floats({10, 20})}, {"w", floats({1, 2})}});
  EXPECT_THAT(outputs[0].as<float>(), ElementsAre(13, 25));
  EXPECT_THAT(outputs[1].as<float>(), ElementsAre(11, 22, 13, 25));
}

TEST_F(UnrollLoops, ALoopMayHaveNoConditionAndNothingThatItCarries) {
  Graph graph = loop(2);
  Node& node = graph.nodes.back();
  Graph& body = node.bodies[0].graph;
  body.captures.push_back({node.inputs[2], body.inputs[2]});
  body.inputs.pop_back();
  body.outputs.pop_back();
  node.inputs.resize(1);
  graph.outputs = node.outputs = {node.outputs[1]};
  const Graph result = run(unroll_loops, infer_types(graph, registry_, log_));
  EXPECT_THAT(changes_, testing::Contains("node 'repeat' (Loop) unrolled into 2 iterations"));
  const std::vector<Tensor> outputs =
      outputs_of(result, {{"x", floats({10, 20})}, {"w", floats({1, 2})}});
  EXPECT_THAT(outputs[0].as<float>(), ElementsAre(11, 22, 12, 23));
}

TEST_F(UnrollLoops, AScanBecomesItsNodesInItsDirections) {
  const Graph result = run(unroll_loops, scan());
  EXPECT_THAT(changes_, testing::Contains("node 'repeat' (Scan) unrolled into 3 iterations"));
  EXPECT_EQ(text(result[result.outputs[1]].type), "float32 2x3");
  const std::vector<Tensor> outputs = outputs_of(
      result,
      {{"v0", floats({0, 0})},
       {"x", Tensor::from<float>(DataType::Float32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})},
       {"w", floats({1, 10})}});
  EXPECT_THAT(outputs[0].as<float>(), ElementsAre(6, 150));
  EXPECT_THAT(outputs[1].as<float>(), ElementsAre(6, 5, 3, 150, 110, 60));
}

TEST_F(UnrollLoops, OthersStayLoops) {
  struct Case {
    const char* what;
    Graph graph;
  };
  const Case cases[] = {{"none", loop(0)},
                        {"more than 16", loop(17)},
                        {"a number that the run knows", loop(2, false)},
                        {"random nodes", with_coin(loop(2))}};
  for (const Case& each : cases) {
    EXPECT_EQ(run(unroll_loops, each.graph).nodes.back().op, "Loop") << each.what;
    EXPECT_THAT(changes_, IsEmpty()) << each.what;
  }
}

}  // namespace
}  // namespace tessera
