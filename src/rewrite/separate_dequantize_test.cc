#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class SeparateDequantize : public PassTest {
 protected:
  // x (bytes), a scale `s`, and a DequantizeLinear `d` of x.
  GraphBuilder shared() {
    GraphBuilder graph = builder();
    graph.input("x", Type::tensor(DataType::UInt8, Shape{4, 6}))
        .constant("s", floats({}, {0.1F}))
        .constant("w", noise({6, 3}, 1))
        .node("d", "DequantizeLinear", {"x", "s"});
    return graph;
  }

  std::vector<std::string> input_makers(const Graph& graph, const std::string& op) {
    std::vector<std::string> names;
    const std::vector<NodeId> makers = producers(graph);
    for (const Node& node : graph.nodes) {
      if (node.op != op) continue;
      for (const ValueId id : node.inputs) {
        const NodeId maker = makers[static_cast<size_t>(id.index)];
        if (!maker.is_none()) names.push_back(graph[maker].name);
      }
    }
    return names;
  }
};

TEST_F(SeparateDequantize, ForEachQuantisedReader) {
  GraphBuilder graph = shared();
  graph.node("m", "MatMul", {"d", "w"})
      .node("a", "Add", {"d", "d"})
      .node("r", "Relu", {"a"})
      .node("q", "QuantizeLinear", {"r", "s"})
      .output("m")
      .output("q");
  const Graph result = run(separate_dequantize, graph);
  EXPECT_THAT(input_makers(result, "MatMul"), ElementsAre("d.copy"));
  EXPECT_THAT(input_makers(result, "Add"), ElementsAre("d", "d"));
  EXPECT_THAT(changes_, ElementsAre("node 'd' (DequantizeLinear) copied for node 'm' (MatMul)"));
}

TEST_F(SeparateDequantize, OthersShareTheOriginal) {
  GraphBuilder graph = shared();
  graph.node("m", "MatMul", {"d", "w"})
      .node("e", "Exp", {"d"})
      .node("n", "Neg", {"d"})
      .output("m")
      .output("e")
      .output("n");
  const Graph result = run(separate_dequantize, graph);
  EXPECT_THAT(input_makers(result, "MatMul"), ElementsAre("d.copy"));
  EXPECT_THAT(input_makers(result, "Exp"), ElementsAre("d"));
  EXPECT_EQ(changes_.size(), 1U);
}

TEST_F(SeparateDequantize, AnOutputKeepsItsName) {
  GraphBuilder graph = shared();
  graph.node("m", "MatMul", {"d", "w"}).output("m").output("d");
  const Graph result = run(separate_dequantize, graph);
  EXPECT_THAT(input_makers(result, "MatMul"), ElementsAre("d.copy"));
  EXPECT_EQ(result[result.outputs[1]].name, "d");
}

TEST_F(SeparateDequantize, NothingForOneReader) {
  GraphBuilder graph = shared();
  graph.node("m", "MatMul", {"d", "w"}).output("m");
  run(separate_dequantize, graph);
  EXPECT_THAT(changes_, IsEmpty());
}

}  // namespace
}  // namespace tessera
