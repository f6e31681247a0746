#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class FoldConstants : public PassTest {};

TEST_F(FoldConstants, ComputesWhatIsConstantAllTheWay) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2}))
      .constant("a", floats({2}, {-1, 2}))
      .node("relu", "Relu", {"a"}, {"b"})
      .node("neg", "Neg", {"b"}, {"c"})
      .node("add", "Add", {"x", "c"}, {"y"})
      .output("y");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("add"));
  EXPECT_THAT(value_of(result, "c").constant.as<float>(), ElementsAre(0, -2));
  EXPECT_THAT(changes_, ElementsAre("node 'relu' (Relu) folded into constant 'b'",
                                    "node 'neg' (Neg) folded into constant 'c'"));
  // Neither intermediates nor replaced values remain.
  EXPECT_TRUE(find_value(result, "a").is_none());
  EXPECT_TRUE(find_value(result, "b").is_none());
}

TEST_F(FoldConstants, OutputsAndKeptValuesBecomeConstantsOfTheirName) {
  GraphBuilder graph = builder();
  graph.constant("a", floats({4}, {1, 2, 3, 4}))
      .node("split", "Split", {"a"}, {"low", "high"})
      .node("neg", "Neg", {"low"}, {"y"})
      .output("y")
      .output("high")
      .keep("low");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(result.nodes, IsEmpty());
  EXPECT_THAT(changes_[0], "node 'split' (Split) folded into constant 'low', 'high'");
  EXPECT_THAT(result[result.outputs[0]].constant.as<float>(), ElementsAre(-1, -2));
  EXPECT_THAT(result[result.outputs[1]].constant.as<float>(), ElementsAre(3, 4));
  EXPECT_THAT(result[result.kept[0]].constant.as<float>(), ElementsAre(1, 2));
}

TEST_F(FoldConstants, ShapeArithmeticOnKnownShapesVanishes) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{2, 3, 4}))
      .constant("zero", ints({1}, {0}))
      .constant("rest", ints({1}, {-1}))
      .node("shape", "Shape", {"x"}, {"s"})
      .node("size", "Size", {"x"}, {"n"})
      .node("gather", "Gather", {"s", "zero"}, {"first"})
      .node("concat", "Concat", {"first", "rest"}, {"target"}, attributes_of({{"axis", 0}}))
      .node("reshape", "Reshape", {"x", "target"}, {"y"})
      .output("y")
      .output("n");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("reshape"));
  EXPECT_THAT(value_of(result, "target").constant.as<int64_t>(), ElementsAre(2, -1));
  EXPECT_THAT(value_of(result, "n").constant.as<int64_t>(), ElementsAre(24));
  EXPECT_THAT(value_of(result, "n").constant.dims(), IsEmpty());
}

TEST_F(FoldConstants, PartsOfAnUnknownShapeThatAreKnownAreFolded) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{Dim::symbol("N"), 3}))
      .constant("one", ints({1}, {1}))
      .node("shape", "Shape", {"x"}, {"s"})
      .node("gather", "Gather", {"s", "one"}, {"columns"})
      .output("s")
      .output("columns");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("shape"));
  EXPECT_THAT(value_of(result, "columns").constant.as<int64_t>(), ElementsAre(3));
}

TEST_F(FoldConstants, TheTensorOfAConstantIsShared) {
  const Tensor tensor = floats({2}, {1, 2});
  GraphBuilder graph = builder();
  graph.node("c", "Constant", {}, {"y"}, attributes_of({{"value", tensor}})).output("y");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(result.nodes, IsEmpty());
  EXPECT_EQ(value_of(result, "y").constant.data(), tensor.data());
}

TEST_F(FoldConstants, ALargeResultIsLeftToRunUnlessItsInputsAreAsLarge) {
  const int64_t elements = kMaxGrownBytes / 4;
  GraphBuilder graph = builder();
  graph.constant("fits", ints({1}, {elements}))
      .constant("does not", ints({1}, {elements + 1}))
      .constant("large", Tensor(DataType::Float32, {elements + 1}))
      .constant("order", ints({2}, {1, elements + 1}))
      .node("small", "ConstantOfShape", {"fits"}, {"a"})
      .node("big", "ConstantOfShape", {"does not"}, {"b"})
      .node("same", "Reshape", {"large", "order"}, {"c"})
      .output("a")
      .output("b")
      .output("c");
  EXPECT_THAT(node_names(run(fold_constants, graph)), ElementsAre("big"));
}

TEST_F(FoldConstants, ManyGrownResultsTogetherHaveALimitToo) {
  GraphBuilder graph = builder();
  graph.constant("shape", ints({1}, {kMaxGrownBytes / 4}));
  for (int index = 0; index < 20; ++index) {
    const std::string name = "v" + std::to_string(index);
    graph.node(name, "ConstantOfShape", {"shape"}).output(name);
  }
  EXPECT_EQ(run(fold_constants, graph).nodes.size(),
            20 - static_cast<size_t>(kMaxGrownBytesTogether / kMaxGrownBytes));
}

// "Same" padding as it is exported: the second padding is known only if the first one is.
TEST_F(FoldConstants, SizesComputedWithFloatsAreKnownOneAfterTheOther) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{1, 5}))
      .constant("axis", ints({}, {1}))
      .constant("half", floats({}, {0.5F}))
      .constant("zeros", ints({3}, {0, 0, 0}))
      .constant("list", ints({1}, {1}));
  std::string from = "x";
  for (const std::string step : {"1", "2", "3"}) {
    graph.node("shape" + step, "Shape", {from}, {"s" + step})
        .node("size" + step, "Gather", {"s" + step, "axis"}, {"n" + step})
        .node("float" + step, "Cast", {"n" + step}, {"f" + step}, attributes_of({{"to", 1}}))
        .node("mul" + step, "Mul", {"f" + step, "half"}, {"h" + step})
        .node("ceil" + step, "Ceil", {"h" + step}, {"c" + step})
        .node("int" + step, "Cast", {"c" + step}, {"i" + step}, attributes_of({{"to", 7}}))
        .node("end" + step, "Reshape", {"i" + step, "list"}, {"e" + step})
        .node("pads" + step, "Concat", {"zeros", "e" + step}, {"p" + step},
              attributes_of({{"axis", 0}}))
        .node("pad" + step, "Pad", {from, "p" + step}, {"y" + step});
    from = "y" + step;
  }
  const Graph result = run(fold_constants, graph.output("y3"));
  EXPECT_THAT(node_names(result), ElementsAre("pad1", "pad2", "pad3"));
  // 5 + 3 = 8, 8 + 4 = 12, 12 + 6 = 18
  EXPECT_EQ(text(value_of(result, "y3").type), "float32 1x18");
}

// A node that inference would refuse is left unchanged: binding infers again and names the node.
TEST_F(FoldConstants, ImpossibleSizesAreLeftToTheNextInference) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{4}))
      .constant("f", floats({1}, {3}))
      .node("int", "Cast", {"f"}, {"i"}, attributes_of({{"to", 7}}))
      .node("reshape", "Reshape", {"x", "i"}, {"y"})
      .output("y");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("reshape"));
  EXPECT_THAT(changes_, ElementsAre("node 'int' (Cast) folded into constant 'i'"));
}

TEST_F(FoldConstants, DequantizedWeightsStayBesideDequantizedBytes) {
  GraphBuilder graph = builder();
  const auto bytes = [](std::vector<int64_t> dims) { return Tensor(DataType::Int8, dims); };
  graph.input("a", Type::tensor(DataType::Int8, Shape{2, 3}))
      .input("x", float_type(Shape{2, 3}))
      .constant("scale", floats({}, {0.5F}))
      .constant("w", bytes({3, 4}))
      .constant("b", Tensor(DataType::Int32, {4}))
      .node("left", "DequantizeLinear", {"a", "scale"})
      .node("right", "DequantizeLinear", {"w", "scale"})
      .node("bias", "DequantizeLinear", {"b", "scale"})
      .node("other", "DequantizeLinear", {"w", "scale"})
      .node("y", "Gemm", {"left", "right", "bias"})
      .node("z", "MatMul", {"x", "other"})
      .output("y")
      .output("z");
  const Graph result = run(fold_constants, graph);
  EXPECT_THAT(node_names(result), ElementsAre("left", "right", "bias", "y", "z"));
}

TEST_F(FoldConstants, WhatTakesTooLongIsLeftToRun) {
  GraphBuilder graph = builder();
  std::vector<std::string> inputs;
  std::string equation;
  for (int index = 0; index < 12; ++index) {
    inputs.push_back("v" + std::to_string(index));
    graph.constant(inputs.back(), noise({1000}, 1));
    equation += (index == 0 ? "" : ",") + std::string(1, static_cast<char>('a' + index));
  }
  const auto folded = [&](size_t count) {
    GraphBuilder some = graph;
    some.node("sum", "Einsum", {inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(count)},
              {"y"}, attributes_of({{"equation", equation.substr(0, 2 * count - 1) + "->"}}))
        .output("y");
    return run(fold_constants, some).nodes.empty();
  };
  EXPECT_TRUE(folded(2));
  EXPECT_FALSE(folded(4));
  EXPECT_FALSE(folded(12));
}

TEST_F(FoldConstants, WhatAKernelRefusesIsLeftToRun) {
  GraphBuilder graph = builder();
  graph.constant("table", floats({2}, {1, 2}))
      .constant("index", ints({1}, {7}))
      .node("gather", "Gather", {"table", "index"}, {"y"})
      .output("y");
  EXPECT_THAT(node_names(run(fold_constants, graph)), ElementsAre("gather"));
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(FoldConstants, RandomAndStateAreNotFolded) {
  GraphBuilder graph = builder();
  graph.constant("a", floats({}, {1}))
      .constant("s", floats({}, {1}))
      .node("coin", "Coin", {"a"}, {"b"})
      .node("memory", "Neg", {"s"}, {"c"})
      .output("b")
      .output("c");
  Graph with_state = graph.graph();
  with_state[find_value(with_state, "s")].is_state = true;
  EXPECT_THAT(node_names(run(fold_constants, infer_types(with_state, registry_, log_))),
              ElementsAre("coin", "memory"));
}

}  // namespace
}  // namespace tessera
