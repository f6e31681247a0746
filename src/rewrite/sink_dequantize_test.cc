#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

Tensor sunk_byte(uint8_t value) {
  const std::vector<uint8_t> values = {value};
  return Tensor::from<uint8_t>(DataType::UInt8, {}, values);
}

class SinkDequantize : public PassTest {
 protected:
  // x (bytes) and constants: a scale `s` with a zero point `z`, and another pair `s2`, `z2`.
  GraphBuilder quantised() {
    GraphBuilder graph = builder();
    graph.input("x", Type::tensor(DataType::UInt8, Shape{1, 2, 4, 6}))
        .constant("s", floats({}, {0.1F}))
        .constant("z", sunk_byte(128))
        .constant("s2", floats({}, {0.3F}))
        .constant("z2", sunk_byte(7))
        .node("d", "DequantizeLinear", {"x", "s", "z"});
    return graph;
  }

  Graph sunk(const GraphBuilder& graph) {
    const Graph rewritten = run(sink_dequantize, graph);
    const std::vector<std::string> changes = changes_;
    Graph result = run(remove_dead_nodes, rewritten);
    changes_ = changes;
    expect_equal(graph.graph(), result);
    return result;
  }

  void expect_equal(const Graph& before, const Graph& after) {
    Tensor bytes(DataType::UInt8, {1, 2, 4, 6});
    uint32_t seed = 5;
    for (uint8_t& byte : bytes.mutable_as<uint8_t>()) {
      seed = seed * 1664525U + 1013904223U;
      byte = static_cast<uint8_t>(seed >> 24U);
    }
    const std::map<std::string, Tensor> inputs = {{"x", bytes}};
    const std::vector<Tensor> expected = outputs_of(before, inputs);
    const std::vector<Tensor> found = outputs_of(after, inputs);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t index = 0; index < found.size(); ++index) {
      EXPECT_TRUE(has_same_bits(expected[index], found[index]));
    }
  }
};

TEST_F(SinkDequantize, CopiesIntegersBetweenEqualScales) {
  GraphBuilder graph = quantised();
  graph.node("t", "Transpose", {"d"}, attributes_of({{"perm", {0, 2, 3, 1}}}))
      .node("q", "QuantizeLinear", {"t", "s", "z"})
      .node("d2", "DequantizeLinear", {"q", "s", "z"})
      .node("p", "MaxPool", {"d2"}, attributes_of({{"kernel_shape", {2, 2}}}))
      .node("q2", "QuantizeLinear", {"p", "s", "z"})
      .node("y", "DequantizeLinear", {"q2", "s", "z"})
      .output("y");
  EXPECT_THAT(node_names(sunk(graph)), ElementsAre("t", "p", "y"));
  EXPECT_EQ(changes_.size(), 4U);
}

TEST_F(SinkDequantize, StaysBeforeAnotherScale) {
  GraphBuilder graph = quantised();
  graph.node("t", "Transpose", {"d"})
      .node("u", "Transpose", {"t"}, attributes_of({{"perm", {1, 0, 2, 3}}}))
      .node("q", "QuantizeLinear", {"u", "s2", "z2"})
      .output("q");
  const Graph result = sunk(graph);
  ASSERT_EQ(result.nodes.size(), 4U);
  EXPECT_EQ(result.nodes[0].op, "Transpose");
  EXPECT_EQ(result.nodes[1].op, "Transpose");
  EXPECT_EQ(result.nodes[2].op, "DequantizeLinear");
  EXPECT_EQ(result[result.nodes[1].outputs[0]].type.element, DataType::UInt8);
}

TEST_F(SinkDequantize, ConcatOfOneScale) {
  GraphBuilder graph = quantised();
  graph.node("e", "DequantizeLinear", {"x", "s", "z"})
      .node("c", "Concat", {"d", "e"}, attributes_of({{"axis", 1}}))
      .node("q", "QuantizeLinear", {"c", "s", "z"})
      .node("r", "DequantizeLinear", {"q", "s", "z"})
      .output("r");
  EXPECT_THAT(node_names(sunk(graph)), ElementsAre("c", "r"));
}

TEST_F(SinkDequantize, SplitHasSeveralOutputs) {
  GraphBuilder graph = quantised();
  graph.node("split", "Split", {"d"}, {"a", "b"}, attributes_of({{"axis", 3}}))
      .node("qa", "QuantizeLinear", {"a", "s", "z"})
      .node("qb", "QuantizeLinear", {"b", "s2", "z2"})
      .output("qa")
      .output("qb");
  const Graph result = sunk(graph);
  EXPECT_EQ(result.nodes[0].op, "Split");
  EXPECT_EQ(result.nodes.size(), 3U);
}

TEST_F(SinkDequantize, NotIfRealNumbersAreRead) {
  GraphBuilder graph = quantised();
  graph.node("t", "Transpose", {"d"})
      .node("q", "QuantizeLinear", {"t", "s", "z"})
      .node("r", "Relu", {"t"})
      .output("q")
      .output("r");
  sunk(graph);
  EXPECT_THAT(changes_, testing::Not(testing::Contains(testing::HasSubstr("moves integers"))));
  GraphBuilder kept = quantised();
  kept.node("t", "Transpose", {"d"}).node("q", "QuantizeLinear", {"t", "s", "z"}).output("q");
  kept.keep("t");
  run(sink_dequantize, kept);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(SinkDequantize, NotAConcatOfTwoScales) {
  GraphBuilder graph = quantised();
  graph.node("e", "DequantizeLinear", {"x", "s2", "z"})
      .node("c", "Concat", {"d", "e"}, attributes_of({{"axis", 1}}))
      .node("q", "QuantizeLinear", {"c", "s", "z"})
      .output("q");
  sunk(graph);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(SinkDequantize, NotOpsThatCompute) {
  GraphBuilder linear = quantised();
  linear.constant("scales", floats({4}, {1, 1, 2, 2}))
      .node("p", "Resize", {"d", "", "scales"}, attributes_of({{"mode", "linear"}}))
      .node("q", "QuantizeLinear", {"p", "s", "z"})
      .output("q");
  sunk(linear);
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(SinkDequantize, AnOutputKeepsItsName) {
  GraphBuilder graph = quantised();
  graph.node("t", "Transpose", {"d"}).node("q", "QuantizeLinear", {"t", "s", "z"}).output("q");
  const Graph result = sunk(graph);
  EXPECT_THAT(node_names(result), ElementsAre("t"));
  EXPECT_EQ(result[result.outputs[0]].name, "q");
  // An input of the graph cannot have another name.
  GraphBuilder input = quantised();
  input.node("q", "QuantizeLinear", {"d", "s", "z"}).output("q");
  EXPECT_THAT(node_names(sunk(input)), ElementsAre("d", "q"));
}

}  // namespace
}  // namespace tessera
