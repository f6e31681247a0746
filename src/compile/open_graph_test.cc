// Graphs for families of shapes, and the sizes of their values.
#include "compile/open_graph.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor/tensors_test.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

class OpenGraphs : public testing::Test {
 protected:
  // y is x with its rows and columns exchanged by a Reshape to computed sizes.
  static GraphBuilder reshaping() {
    GraphBuilder builder(all_ops());
    builder.input("x", float_type(Shape{Dim::symbol("rows"), Dim::symbol("columns")}))
        .node("turn", "Transpose", {"x"}, {"turned"})
        .node("shape", "Shape", {"turned"}, {"sizes"})
        .node("reshape", "Reshape", {"x", "sizes"}, {"y"})
        .output("y");
    return builder;
  }

  LoadedModel loaded(const GraphBuilder& builder) {
    return load_model(ImportedModel{.graph = builder.graph()}, {}, all_ops(), pool_, log_);
  }

  std::variant<OpenGraph, std::string> opened(const LoadedModel& model, std::vector<int64_t> dims) {
    return open_graph(model, {{"x", std::move(dims)}}, {}, all_ops(), pool_, log_);
  }

  ThreadPool pool_{1};
  Log log_{[](const std::string&) {}};
};

TEST_F(OpenGraphs, PassWhatIsComputedFromSizes) {
  const LoadedModel model = loaded(reshaping());
  const auto made = opened(model, {3, 5});
  const auto* const open = std::get_if<OpenGraph>(&made);
  ASSERT_NE(open, nullptr) << std::get<std::string>(made);
  EXPECT_EQ(open->model_inputs, 1U);
  ASSERT_EQ(open->graph.inputs.size(), 2U);
  EXPECT_EQ(open->graph[open->graph.inputs[1]].name, "sizes");
  ASSERT_EQ(open->graph.nodes.size(), 1U)
      << "nothing reads the transposed values but for their shape";
  ValueSizes sizes(model.graph, *open, all_ops());
  for (const int64_t rows : {4, 70}) {
    ASSERT_TRUE(sizes.set(std::vector<std::vector<int64_t>>{{rows, 9}}));
    const Tensor& passed = sizes.inputs()[0];
    EXPECT_EQ(std::vector<int64_t>(passed.as<int64_t>().begin(), passed.as<int64_t>().end()),
              (std::vector<int64_t>{9, rows}));
    const ValueId y = open->graph.outputs[0];
    EXPECT_EQ(sizes.dims()[static_cast<size_t>(y.index)], (std::vector<int64_t>{9, rows}));
  }
  EXPECT_FALSE(sizes.set(std::vector<std::vector<int64_t>>{{3, 5, 7}})) << "of another rank";
}

// The values of x are divided by the root of the number of rows, and x is cut at half of them,
// which the model computes with floating-point numbers.
TEST_F(OpenGraphs, PassFewNumbersThatFollowFromSizes) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{Dim::symbol("rows"), 4}))
      .constant("first", Tensor::from<int64_t>(DataType::Int64, {1}, std::vector<int64_t>{0}))
      .constant("half", Tensor::from<float>(DataType::Float32, {}, std::vector<float>{0.5F}))
      .node("shape", "Shape", {"x"}, {"sizes"})
      .node("gather", "Gather", {"sizes", "first"}, {"rows"})
      .node("cast", "Cast", {"rows"}, {"number"}, attributes_of({{"to", 1}}))
      .node("root", "Sqrt", {"number"}, {"root"})
      .node("divide", "Div", {"x", "root"}, {"divided"})
      .node("scale", "Mul", {"number", "half"}, {"halved"})
      .node("floor", "Floor", {"halved"}, {"whole"})
      .node("back", "Cast", {"whole"}, {"end"}, attributes_of({{"to", 7}}))
      .node("cut", "Slice", {"divided", "first", "end"}, {"y"})
      .output("y");
  const LoadedModel model = loaded(builder);
  const auto made = opened(model, {9, 4});
  const auto* const open = std::get_if<OpenGraph>(&made);
  ASSERT_NE(open, nullptr) << std::get<std::string>(made);
  std::vector<std::string> passed;
  for (const ValueId id : open->graph.inputs) passed.push_back(open->graph[id].name);
  EXPECT_EQ(passed, (std::vector<std::string>{"x", "root", "end"}));
  ValueSizes sizes(model.graph, *open, all_ops());
  for (const int64_t rows : {16, 25}) {
    ASSERT_TRUE(sizes.set(std::vector<std::vector<int64_t>>{{rows, 4}}));
    EXPECT_EQ(sizes.inputs()[0].as<float>()[0], std::sqrt(static_cast<float>(rows)));
    EXPECT_EQ(sizes.inputs()[1].as<int64_t>()[0], rows / 2);
    const ValueId y = open->graph.outputs[0];
    EXPECT_EQ(sizes.dims()[static_cast<size_t>(y.index)], (std::vector<int64_t>{rows / 2, 4}));
  }
}

// Sizes are taken from a node with the same operation and inputs, if there is one.
TEST_F(OpenGraphs, TellNodesThatDifferApart) {
  const auto axis = [](int64_t number) {
    Attributes attributes;
    attributes.set("axis", number);
    return attributes;
  };
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{Dim::symbol("rows"), Dim::symbol("columns")}))
      .input("z", float_type(Shape{Dim::symbol("lines"), Dim::symbol("columns")}))
      .constant("pairs", ints({-1, 2}))
      .constant("quads", ints({-1, 4}))
      .node("two", "Reshape", {"x", "pairs"}, {"y0"})
      .node("four", "Reshape", {"x", "quads"}, {"y1"})
      .node("below", "Concat", {"x", "x"}, {"y2"}, axis(0))
      .node("beside", "Concat", {"x", "x"}, {"y3"}, axis(1))
      .node("again", "Concat", {"x", "x"}, {"y4"}, axis(0))
      .node("other", "Concat", {"z", "x"}, {"y5"}, axis(0));
  for (int index = 0; index < 6; ++index) builder.output("y" + std::to_string(index));
  const LoadedModel model = loaded(builder);
  const auto made = open_graph(model, {{"x", {8, 6}}, {"z", {3, 6}}}, {}, all_ops(), pool_, log_);
  const auto& open = std::get<OpenGraph>(made);
  ValueSizes sizes(model.graph, open, all_ops());
  const auto dims = [&](size_t output) {
    return sizes.dims()[static_cast<size_t>(open.graph.outputs[output].index)];
  };
  for (const int64_t rows : {4, 10, 4}) {
    for (const int64_t lines : {rows, rows + 1}) {
      ASSERT_TRUE(sizes.set(std::vector<std::vector<int64_t>>{{rows, 8}, {lines, 8}}));
      const std::vector<int64_t> expected[] = {{rows * 4, 2}, {rows * 2, 4}, {rows * 2, 8},
                                               {rows, 16},    {rows * 2, 8}, {lines + rows, 8}};
      for (size_t output = 0; output < 6; ++output) EXPECT_EQ(dims(output), expected[output]);
    }
  }
  EXPECT_FALSE(sizes.set(std::vector<std::vector<int64_t>>{{3, 3}, {3, 3}})) << "no rows of four";
  EXPECT_TRUE(sizes.set(std::vector<std::vector<int64_t>>{{4, 3}, {3, 3}}));
}

TEST_F(OpenGraphs, PassSizesThatAreOutputs) {
  const LoadedModel model = loaded(reshaping().output("sizes"));
  const OpenGraph open = std::get<OpenGraph>(opened(model, {3, 5}));
  ASSERT_EQ(open.graph.outputs.size(), 2U);
  EXPECT_EQ(open.graph.outputs[1], open.graph.inputs[1]);
}

TEST_F(OpenGraphs, LeaveOpenWhatIsKnownOnlyInTheRun) {
  GraphBuilder finding(all_ops());
  finding.input("x", float_type(Shape{Dim::symbol("n"), Dim(3)}))
      .node("find", "NonZero", {"x"}, {"places"})
      .node("square", "Mul", {"x", "x"}, {"squares"})
      .output("places")
      .output("squares");
  const LoadedModel model = loaded(finding);
  const OpenGraph open = std::get<OpenGraph>(opened(model, {4, 3}));
  ValueSizes sizes(model.graph, open, all_ops());
  for (const int64_t rows : {4, 9}) {
    ASSERT_TRUE(sizes.set(std::vector<std::vector<int64_t>>{{rows, 3}}));
    const auto dims = [&](size_t output) {
      return sizes.dims()[static_cast<size_t>(open.graph.outputs[output].index)];
    };
    EXPECT_EQ(dims(0), (std::vector<int64_t>{2, -1}));
    EXPECT_EQ(dims(1), (std::vector<int64_t>{rows, 3}));
  }
}

TEST_F(OpenGraphs, AreForTensorsOnly) {
  GraphBuilder counting(all_ops());
  counting.input("x", Type::sequence(float_type()))
      .node("count", "SequenceLength", {"x"}, {"y"})
      .output("y");
  const auto made = open_graph(loaded(counting), {}, {}, all_ops(), pool_, log_);
  EXPECT_EQ(std::get<std::string>(made), "input 'x' is no tensor");
}

// Comparing all pairs of sizes of a node would take minutes here.
TEST_F(OpenGraphs, OfNodesWithThousandsOfInputsTakeNoLonger) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{Dim::symbol("rows"), Dim(2)}));
  const std::vector<std::string> inputs(20'000, "x");
  Attributes attributes;
  attributes.set("axis", int64_t{0});
  builder.node("join", "Concat", inputs, {"y"}, attributes).output("y");
  const LoadedModel model = loaded(builder);
  EXPECT_GT(typical_shapes(model.graph, {{"x", {6, 2}}}, all_ops()).at("x")[0], 1);
}

TEST_F(OpenGraphs, HaveFewSizesThatAreEqualByChance) {
  const LoadedModel model = loaded(reshaping());
  const auto typical = typical_shapes(model.graph, {{"x", {6, 6}}}, all_ops());
  EXPECT_NE(typical.at("x")[0], typical.at("x")[1]) << "rows and columns need not be equal";
  EXPECT_EQ(typical_shapes(model.graph, {{"x", {6, 11}}}, all_ops()).at("x"),
            (std::vector<int64_t>{6, 11}))
      << "sizes that are typical already stay";
}

}  // namespace
}  // namespace tessera
