#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

class FoldPads : public PassTest {
 protected:
  // x --pad--> p --conv--> y. Since version 11, pads and value are inputs.
  GraphBuilder pad_and_conv(const Sizes& pads, float value = 0, Attributes conv = {},
                            int opset = 17) {
    GraphBuilder graph = builder(opset);
    graph.input("x", float_type(Shape{1, 2, 6, 7})).constant("w", noise({3, 2, 3, 3}, 1));
    if (opset < 11) {
      Attributes attributes = attributes_of({{"pads", pads}});
      attributes.set("value", value);
      graph.node("pad", "Pad", {"x"}, {"p"}, attributes);
    } else {
      graph.constant("pads", ints({8}, pads)).constant("value", floats({}, {value}));
      graph.node("pad", "Pad", {"x", "pads", "value"}, {"p"});
    }
    graph.node("conv", "Conv", {"p", "w"}, {"y"}, std::move(conv)).output("y");
    return graph;
  }

  Graph folded(const GraphBuilder& graph) {
    const Graph rewritten = run(fold_pads, graph);
    const std::vector<std::string> changes = changes_;
    Graph result = run(remove_dead_nodes, rewritten);
    changes_ = changes;
    return result;
  }

  void expect_folded(const GraphBuilder& graph, const Sizes& pads) {
    const Graph result = folded(graph);
    ASSERT_THAT(node_names(result), ElementsAre("conv"));
    EXPECT_EQ(*result.nodes[0].attributes.find_ints("pads"), pads);
    EXPECT_THAT(changes_, ElementsAre("node 'pad' (Pad) folded into node 'conv' (Conv)"));
    const std::map<std::string, Tensor> inputs = {{"x", noise({1, 2, 6, 7}, 7)}};
    const std::vector<Tensor> expected = outputs_of(graph.graph(), inputs);
    const std::vector<Tensor> found = outputs_of(result, inputs);
    ASSERT_EQ(expected[0].dims(), found[0].dims());
    EXPECT_THAT(found[0].as<float>(), Pointwise(FloatNear(1e-5F), expected[0].as<float>()));
  }

  void expect_kept(const GraphBuilder& graph) {
    EXPECT_THAT(node_names(folded(graph)), testing::Contains("pad"));
    EXPECT_THAT(changes_, IsEmpty());
  }
};

TEST_F(FoldPads, AddsToThePadsOfTheConv) {
  for (const int opset : {9, 11, 13, 17, 18}) {
    expect_folded(pad_and_conv({0, 0, 0, 1, 0, 0, 2, 1}, 0, {}, opset), {0, 1, 2, 1});
    expect_folded(
        pad_and_conv({0, 0, 0, 1, 0, 0, 2, 1}, 0, attributes_of({{"pads", {1, 0, 0, 2}}}), opset),
        {1, 1, 2, 3});
  }
  expect_folded(
      pad_and_conv({0, 0, 0, 1, 0, 0, 2, 1}, -0.0F, attributes_of({{"auto_pad", "VALID"}})),
      {0, 1, 2, 1});
}

TEST_F(FoldPads, OfSomeAxes) {
  GraphBuilder graph = builder(18);
  graph.input("x", float_type(Shape{1, 2, 6, 7}))
      .constant("w", noise({3, 2, 3, 3}, 1))
      .constant("pads", ints({4}, {1, 2, 3, 4}))
      .constant("axes", ints({2}, {-1, 2}))
      .node("pad", "Pad", {"x", "pads", "", "axes"}, {"p"})
      .node("conv", "Conv", {"p", "w"}, {"y"})
      .output("y");
  expect_folded(graph, {2, 1, 4, 3});
}

TEST_F(FoldPads, NotOtherPads) {
  const Sizes pads = {0, 0, 1, 1, 0, 0, 1, 1};
  expect_kept(pad_and_conv(pads, 1));
  expect_kept(pad_and_conv(pads, 1, {}, 9));
  expect_kept(pad_and_conv(pads, 0, attributes_of({{"auto_pad", "SAME_UPPER"}})));
  expect_kept(pad_and_conv({0, 0, 1, -1, 0, 0, 1, 1}));
  expect_kept(pad_and_conv({1, 0, 1, 1, 0, 0, 1, 1}));
  // Together, they would be more than a Conv may have.
  expect_kept(
      pad_and_conv({0, 0, 0, INT32_MAX, 0, 0, 0, 0}, 0, attributes_of({{"pads", {0, 1, 0, 0}}})));
  GraphBuilder reflected = builder();
  reflected.input("x", float_type(Shape{1, 2, 6, 7}))
      .constant("w", noise({3, 2, 3, 3}, 1))
      .constant("pads", ints({8}, pads))
      .node("pad", "Pad", {"x", "pads"}, {"p"}, attributes_of({{"mode", "reflect"}}))
      .node("conv", "Conv", {"p", "w"}, {"y"})
      .output("y");
  expect_kept(reflected);
}

TEST_F(FoldPads, PadsThatAreNotKnown) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{1, 2, 6, 7}))
      .constant("w", noise({3, 2, 3, 3}, 1))
      .input("pads", Type::tensor(DataType::Int64, Shape{8}))
      .node("pad", "Pad", {"x", "pads"}, {"p"})
      .node("conv", "Conv", {"p", "w"}, {"y"})
      .output("y");
  expect_kept(graph);
}

TEST_F(FoldPads, APadThatOthersReadStays) {
  GraphBuilder graph = pad_and_conv({0, 0, 1, 1, 0, 0, 1, 1});
  graph.node("relu", "Relu", {"p"}, {"z"}).output("z");
  const Graph result = folded(graph);
  EXPECT_THAT(node_names(result), ElementsAre("pad", "conv", "relu"));
  EXPECT_EQ(result[result.nodes[1].inputs[0]].name, "x");
}

}  // namespace
}  // namespace tessera
