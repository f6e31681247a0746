#include "codegen/groups/fuse_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "base/threads/parallel.h"
#include "codegen/expression/evaluate.h"
#include "infer/infer.h"
#include "ops/evaluate.h"
#include "ops/graph_test.h"
#include "ops/op_test.h"

namespace tessera::codegen {
namespace {

class FindGroups : public testing::Test {
 protected:
  GraphBuilder builder(int opset = 17) const { return GraphBuilder(all_ops(), opset); }

  Graph typed(const GraphBuilder& builder) const {
    return infer_types(builder.graph(), all_ops(), Log());
  }

  // The names of the nodes of each group, joined by spaces.
  std::vector<std::string> groups_of(const Graph& graph) const {
    std::vector<std::string> names;
    for (const plugin::FusedGroup& group : find_groups(FusionGraph(graph))) {
      std::string text;
      for (const int32_t node : group.nodes) {
        text += (text.empty() ? "" : " ") + graph.nodes[static_cast<size_t>(node)].name;
      }
      names.push_back(text);
    }
    return names;
  }
};

TEST_F(FindGroups, AChainIsOneGroup) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{2, 3}})).input("y", float_type({{3}}));
  graph.node("a", "Add", {"x", "y"}, {"s"}).node("b", "Relu", {"s"}, {"r"});
  graph.node("c", "Mul", {"r", "x"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b c"));
}

TEST_F(FindGroups, ScalarsFuse) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{})).input("y", float_type({{1}}));
  graph.node("a", "Relu", {"x"}, {"s"}).node("b", "Neg", {"s"}, {"r"});
  graph.node("c", "Mul", {"r", "y"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b c"));
}

TEST_F(FindGroups, OneElementwiseNodeIsNone) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{2, 3}})).node("a", "Relu", {"x"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), IsEmpty());
}

TEST_F(FindGroups, AValueReadTwiceInsideCutsNothing) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{8}})).node("a", "Sigmoid", {"x"}, {"s"});
  graph.node("b", "Mul", {"x", "s"}, {"m"}).node("c", "Add", {"m", "s"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b c"));
}

TEST_F(FindGroups, WhatOthersReadIsAnOutput) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{8}})).node("a", "Relu", {"x"}, {"s"});
  graph.node("b", "Neg", {"s"}, {"z"}).output("z").output("s");
  const Graph made = typed(graph);
  const std::vector<plugin::FusedGroup> groups = find_groups(FusionGraph(made));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].outputs.size(), 2U);
  EXPECT_EQ(groups[0].results.size(), 2U);
}

TEST_F(FindGroups, APathThroughAnotherNodeCuts) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{4, 4}})).node("a", "Relu", {"x"}, {"s"});
  graph.node("b", "Neg", {"s"}, {"n"}).node("c", "MatMul", {"n", "x"}, {"p"});
  graph.node("d", "Add", {"n", "p"}, {"q"}).node("e", "Relu", {"q"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b", "d e"));
}

TEST_F(FindGroups, BranchesMeet) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{4, 4}})).input("y", float_type({{4, 4}}));
  graph.node("a", "Relu", {"x"}, {"s"}).node("b", "Neg", {"y"}, {"n"});
  graph.node("c", "Add", {"s", "n"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b c"));
}

TEST_F(FindGroups, GroupsDoNotWaitForEachOther) {
  // a -> b and c -> d would be two groups that each wait for the other one.
  GraphBuilder graph = builder();
  graph.input("x", float_type({{4, 4}}));
  graph.node("a", "Relu", {"x"}, {"a1"}).node("c", "Neg", {"x"}, {"c1"});
  graph.node("p", "MatMul", {"a1", "x"}, {"p1"}).node("q", "MatMul", {"c1", "x"}, {"q1"});
  graph.node("b", "Add", {"a1", "q1"}, {"b1"}).node("d", "Add", {"c1", "p1"}, {"d1"});
  graph.output("b1").output("d1");
  const std::vector<std::string> groups = groups_of(typed(graph));
  EXPECT_EQ(groups.size(), 1U) << testing::PrintToString(groups);
}

TEST_F(FindGroups, AReductionWithWhatIsAroundIt) {
  GraphBuilder graph = builder(13);
  graph.input("x", float_type({{2, 3, 8}})).input("g", float_type({{8}}));
  graph.constant("e", floats({}, {1e-5F}));
  graph.node("square", "Mul", {"x", "x"}, {"xx"});
  graph.node("mean", "ReduceMean", {"xx"}, {"m"}, attributes_of({{"axes", {-1}}}));
  graph.node("eps", "Add", {"m", "e"}, {"me"}).node("root", "Sqrt", {"me"}, {"r"});
  graph.node("norm", "Div", {"x", "r"}, {"n"}).node("scale", "Mul", {"n", "g"}, {"z"});
  graph.output("z");
  const Graph made = typed(graph);
  EXPECT_THAT(groups_of(made),
              ElementsAre("square mean eps root norm scale", "mean eps root norm scale"));
  const plugin::FusedGroup group = find_groups(FusionGraph(made))[0];
  EXPECT_EQ(group.reduced_axes, 4U);
  EXPECT_EQ(group.inputs.size(), 2U);
}

TEST_F(FindGroups, AnotherAxisCuts) {
  GraphBuilder graph = builder(13);
  graph.input("x", float_type({{6, 6}}));
  graph.node("a", "Softmax", {"x"}, {"s"}, attributes_of({{"axis", 1}}));
  graph.node("b", "Softmax", {"s"}, {"z"}, attributes_of({{"axis", 0}})).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a", "b"));
}

// A gate has one element for each row, without a reduction.
TEST_F(FindGroups, WhatIsRepeatedAlongRowsIsInside) {
  for (const bool is_read_by_others : {false, true}) {
    GraphBuilder graph = builder(13);
    graph.input("x", float_type({{2, 4, 3, 3}})).input("s", float_type({{2, 4, 1, 1}}));
    graph.node("a", "Relu", {"x"}, {"a1"}).node("g", "HardSigmoid", {"s"}, {"g1"});
    graph.node("h", "Neg", {"g1"}, {"h1"}).node("scale", "Mul", {"a1", "h1"}, {"m"});
    graph.node("b", "Neg", {"m"}, {"z"}).output("z");
    if (is_read_by_others) graph.output("g1");
    const Graph made = typed(graph);
    if (is_read_by_others) {
      EXPECT_THAT(groups_of(made), ElementsAre("a scale b", "g h"));
      continue;
    }
    EXPECT_THAT(groups_of(made), ElementsAre("a g h scale b"));
    const plugin::FusedGroup group = find_groups(FusionGraph(made))[0];
    EXPECT_EQ(group.reduced_axes, 0U);
    EXPECT_EQ(group.operands.size(), 2U);
    EXPECT_EQ(std::ranges::count_if(group.operands, &plugin::FusedAccess::is_whole), 1);
  }
}

TEST_F(FindGroups, AComputedScalarKeepsNoReductionOut) {
  GraphBuilder graph = builder(13);
  graph.input("x", float_type({{4, 8}})).input("s", float_type({{1}}));
  graph.node("e", "Exp", {"s"}, {"e1"}).node("scale", "Mul", {"x", "e1"}, {"m"});
  graph.node("soft", "Softmax", {"m"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("scale soft", "soft"));
}

TEST_F(FindGroups, ViewsAreInsideButNotAtTheEnd) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{2, 6}})).input("y", float_type({{2, 3, 2}}));
  const std::vector<int64_t> dims = {2, 3, 2};
  graph.constant("dims", ints({3}, dims));
  graph.node("a", "Relu", {"x"}, {"r"}).node("v", "Reshape", {"r", "dims"}, {"w"});
  graph.node("b", "Add", {"w", "y"}, {"s"}).node("f", "Flatten", {"s"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a v b"));
}

TEST_F(FindGroups, WithoutTheFirstNodesAfterAProduct) {
  GraphBuilder graph = builder();
  graph.input("x", float_type({{4, 4}})).node("p", "MatMul", {"x", "x"}, {"p1"});
  graph.node("a", "Relu", {"p1"}, {"a1"}).node("b", "Neg", {"a1"}, {"b1"});
  graph.node("c", "Exp", {"b1"}, {"c1"}).output("c1");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b c", "b c"));
}

TEST_F(FindGroups, EqualGroupsHaveEqualTexts) {
  std::set<std::string> texts;
  for (const bool is_swapped : {false, true}) {
    for (const int64_t size : {4, 1000}) {
      GraphBuilder graph = builder();
      graph.input("p", float_type({{2, size}})).input("q", float_type({{size}}));
      const std::vector<std::string> first =
          is_swapped ? std::vector<std::string>{"q", "p"} : std::vector<std::string>{"p", "q"};
      graph.node(is_swapped ? "m" : "n", "Add", first, {"s"});
      graph.node("last", "Tanh", {"s"}, {"z"}).output("z");
      const Graph made = typed(graph);
      for (const plugin::FusedGroup& group : find_groups(FusionGraph(made))) {
        texts.insert(group.text);
      }
    }
  }
  EXPECT_EQ(texts.size(), 1U);
}

// --- Parts ---------------------------------------------------------------------------------------

Attributes range(int64_t axis, int64_t start, int64_t end) {
  Attributes attributes = attributes_of({{"axes", {axis}}});
  attributes.set("starts", std::vector<int64_t>{start});
  attributes.set("ends", std::vector<int64_t>{end});
  return attributes;
}

// x * c + concat(-x[:, 4:], x[:, :4]) * s.
GraphBuilder rotary(GraphBuilder graph) {
  graph.input("x", float_type({{3, 8}})).input("c", float_type({{8}}));
  graph.input("s", float_type({{8}})).node("cosine", "Mul", {"x", "c"}, {"xc"});
  graph.node("low", "Slice", {"x"}, {"l"}, range(1, 0, 4));
  graph.node("high", "Slice", {"x"}, {"h"}, range(1, 4, 8)).node("neg", "Neg", {"h"}, {"n"});
  graph.node("half", "Concat", {"n", "l"}, {"r"}, attributes_of({{"axis", -1}}));
  graph.node("sine", "Mul", {"r", "s"}, {"rs"}).node("add", "Add", {"xc", "rs"}, {"z"});
  return graph.output("z");
}

TEST_F(FindGroups, ARotaryEmbeddingIsOneGroup) {
  const Graph made = typed(rotary(builder(9)));
  EXPECT_THAT(groups_of(made), ElementsAre("cosine low high neg half sine add", "cosine sine add"));
  const plugin::FusedGroup group = find_groups(FusionGraph(made))[0];
  EXPECT_THAT(group.dims, ElementsAre(3, 4));
  EXPECT_EQ(group.operands.size(), 6U) << "two parts of x, of c and of s";
  ASSERT_EQ(group.results.size(), 2U);
  EXPECT_EQ(group.outputs.size(), 1U);
  EXPECT_EQ(group.results[0].offset + group.results[1].offset, 4);
  EXPECT_EQ(group.bytes, 4 * (24 + 8 + 8 + 24));
}

TEST_F(FindGroups, ASliceOfWhatOthersMakeReadsOnlyItsPart) {
  GraphBuilder graph = builder(9);
  graph.input("x", float_type({{3, 8}})).node("part", "Slice", {"x"}, {"p"}, range(1, 2, 6));
  graph.node("a", "Relu", {"p"}, {"r"}).node("b", "Neg", {"r"}, {"z"}).output("z");
  const Graph made = typed(graph);
  EXPECT_THAT(groups_of(made), ElementsAre("part a b", "a b"));
  const plugin::FusedGroup group = find_groups(FusionGraph(made))[0];
  EXPECT_EQ(group.bytes, 4 * (12 + 12));
  EXPECT_FALSE(group.operands[0].is_whole);
}

TEST_F(FindGroups, WhatOnlyMovesElementsIsNone) {
  GraphBuilder graph = builder(9);
  graph.input("x", float_type({{3, 8}}));
  graph.node("low", "Slice", {"x"}, {"l"}, range(1, 0, 4));
  graph.node("high", "Slice", {"x"}, {"h"}, range(1, 4, 8));
  graph.node("swap", "Concat", {"h", "l"}, {"z"}, attributes_of({{"axis", 1}})).output("z");
  EXPECT_THAT(groups_of(typed(graph)), IsEmpty());
}

// A reduction cannot follow a Concat, so there are two ways to form groups.
TEST_F(FindGroups, AConcatBeforeAReductionIsAChoice) {
  GraphBuilder graph = builder(13);
  graph.input("x", float_type({{3, 8}})).input("y", float_type({{3, 4}}));
  graph.node("a", "Relu", {"x"}, {"a1"});
  graph.node("join", "Concat", {"a1", "y"}, {"j"}, attributes_of({{"axis", 1}}));
  graph.node("b", "Neg", {"j"}, {"b1"}).node("soft", "Softmax", {"b1"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a join b", "soft", "b soft"));
}

TEST_F(FindGroups, TooManyPartsCut) {
  GraphBuilder graph = builder(9);
  graph.input("x", float_type({{3, 17}})).input("y", float_type({{3, 1}}));
  graph.node("a", "Relu", {"x"}, {"a1"}).node("b", "Neg", {"a1"}, {"b1"});
  graph.node("join", "Concat", {"b1", "y"}, {"j"}, attributes_of({{"axis", 1}}));
  graph.node("c", "Relu", {"j"}, {"z"}).output("z");
  EXPECT_THAT(groups_of(typed(graph)), ElementsAre("a b"));
}

TEST_F(FindGroups, PartsThatOthersReadAreOutputs) {
  GraphBuilder graph = builder(9);
  graph.input("x", float_type({{3, 8}})).node("a", "Relu", {"x"}, {"r"});
  Attributes sizes = attributes_of({{"split", {2, 6}}});
  sizes.set("axis", int64_t{1});
  graph.node("cut", "Split", {"r"}, {"l", "h"}, sizes).node("b", "Neg", {"l"}, {"z"});
  graph.output("z").output("h");
  const Graph made = typed(graph);
  EXPECT_THAT(groups_of(made), ElementsAre("a cut b"));
  const plugin::FusedGroup group = find_groups(FusionGraph(made))[0];
  EXPECT_EQ(group.outputs.size(), 2U);
  EXPECT_EQ(group.results.size(), 4U) << "h has three parts";
}

TEST_F(FindGroups, TenThousandNodesInARow) {
  GraphBuilder graph = builder();
  graph.input("v0", float_type({{16}})).input("y", float_type({{16}}));
  constexpr int kNodes = 10'000;
  for (int at = 0; at < kNodes; ++at) {
    const std::string from = "v" + std::to_string(at);
    const std::string to = "v" + std::to_string(at + 1);
    graph.node("n" + std::to_string(at), at % 2 == 0 ? "Add" : "Mul", {from, "y"}, {to});
  }
  graph.output("v" + std::to_string(kNodes));
  const Graph made = typed(graph);
  size_t covered = 0;
  for (const plugin::FusedGroup& group : find_groups(FusionGraph(made))) {
    covered += group.nodes.size();
    EXPECT_GE(group.nodes.size(), 700U);
  }
  EXPECT_EQ(covered, static_cast<size_t>(kNodes));
}

// --- Random graphs -------------------------------------------------------------------------------

// Random elementwise ops, reductions and products over a few shapes.
GraphBuilder random_graph(GraphBuilder graph, std::mt19937& random) {
  const auto draw = [&](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  const std::vector<std::string> unary = {"Relu", "Neg", "Abs", "Sqrt", "Floor"};
  const std::vector<std::string> binary = {"Add", "Sub", "Mul", "Max"};
  std::vector<std::string> whole = {"x"};  // of 4x5x5
  std::vector<std::string> rows = {"r"};   // of 4x5x1
  graph.input("x", float_type({{4, 5, 5}})).input("r", float_type({{4, 5, 1}}));
  graph.input("c", float_type({{5}}));
  const int count = 4 + draw(24);
  for (int at = 0; at < count; ++at) {
    const std::string name = "n" + std::to_string(at);
    const std::string out = "v" + std::to_string(at);
    const std::string& left = whole[static_cast<size_t>(draw(static_cast<int>(whole.size())))];
    const std::string& row = rows[static_cast<size_t>(draw(static_cast<int>(rows.size())))];
    const std::string& other = whole[static_cast<size_t>(draw(static_cast<int>(whole.size())))];
    const std::string& op = binary[static_cast<size_t>(draw(4))];
    switch (draw(10)) {
      case 0:
      case 1:
        graph.node(name, unary[static_cast<size_t>(draw(5))], {left}, {out});
        break;
      case 2:
      case 3:
      case 4:
        graph.node(name, op, {left, other}, {out});
        break;
      case 5:
        graph.node(name, op, {left, row}, {out});
        break;
      case 6:
        graph.node(name, op, {"c", left}, {out});
        break;
      case 7:
        graph.node(name, "MatMul", {left, other}, {out});
        break;
      case 8:
        graph.node(name, "ReduceMax", {left}, {out}, attributes_of({{"axes", {2}}}));
        rows.push_back(out);
        continue;
      default:
        graph.node(name, "Abs", {row}, {out});
        rows.push_back(out);
        continue;
    }
    whole.push_back(out);
  }
  graph.output(whole.back()).output(rows.back());
  return graph;
}

// Random elementwise ops, slices and joins over matrices with any number of columns.
GraphBuilder random_parts(GraphBuilder graph, std::mt19937& random) {
  const auto draw = [&](size_t count) {
    return static_cast<size_t>(
        std::uniform_int_distribution<int>(0, static_cast<int>(count) - 1)(random));
  };
  struct Matrix {
    std::string name;
    int64_t columns;
  };
  std::vector<Matrix> made = {{"x", 12}, {"y", 12}, {"w", 4}};
  graph.input("x", float_type({{5, 12}})).input("y", float_type({{5, 12}}));
  graph.input("w", float_type({{5, 4}}));
  const int64_t units[] = {1, 2, 3, 4, 6};
  for (size_t at = 0, count = 4 + draw(20); at < count; ++at) {
    const std::string name = "n" + std::to_string(at);
    const std::string out = "v" + std::to_string(at);
    const Matrix left = made[draw(made.size())];
    const Matrix right = made[draw(made.size())];
    const int64_t unit = units[draw(std::size(units))];
    const size_t what = draw(8);
    if (what < 2) {
      graph.node(name, what == 0 ? "Neg" : "Abs", {left.name}, {out});
      made.push_back({out, left.columns});
    } else if (what < 4 && left.columns == right.columns) {
      graph.node(name, "Add", {left.name, right.name}, {out});
      made.push_back({out, left.columns});
    } else if (what == 4 && left.columns + right.columns <= 36) {
      graph.node(name, "Concat", {left.name, right.name}, {out}, attributes_of({{"axis", 1}}));
      made.push_back({out, left.columns + right.columns});
    } else if (what < 7 && left.columns % unit == 0 && left.columns > unit) {
      const auto units_in = static_cast<size_t>(left.columns / unit);
      const size_t first = draw(units_in);
      const size_t last = first + 1 + draw(units_in - first);
      const auto start = static_cast<int64_t>(first) * unit;
      const auto end = static_cast<int64_t>(last) * unit;
      graph.node(name, "Slice", {left.name}, {out}, range(1, start, end));
      made.push_back({out, end - start});
    } else if (left.columns % 2 == 0) {
      graph.node(name, "Split", {left.name}, {out, out + "b"}, attributes_of({{"axis", 1}}));
      made.push_back({out, left.columns / 2});
      made.push_back({out + "b", left.columns / 2});
    }
  }
  for (size_t at = 0; at < 3; ++at) {
    const std::string& name = made[made.size() - 1 - at].name;
    if (name[0] == 'v') graph.output(name);
  }
  return graph;
}

// Whether no path leads from the group through other nodes into it.
bool is_convex(const Graph& graph, const std::vector<int32_t>& nodes) {
  const std::vector<NodeId> makers = producers(graph);
  std::set<int32_t> inside(nodes.begin(), nodes.end());
  std::set<int32_t> after;  // outside, and behind a node of the group
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes.size()); ++node) {
    bool is_after = false;
    bool is_behind_outside = false;
    for (const ValueId input : graph[NodeId{node}].inputs) {
      const NodeId maker = makers[static_cast<size_t>(input.index)];
      if (maker.is_none()) continue;
      is_behind_outside |= after.contains(maker.index);
      is_after |= after.contains(maker.index) || inside.contains(maker.index);
    }
    if (inside.contains(node) && is_behind_outside) return false;
    if (!inside.contains(node) && is_after) after.insert(node);
  }
  return true;
}

// Whether all groups that share no node with an earlier one of the list can run one after
// another.
bool can_all_run(const Graph& graph, const std::vector<plugin::FusedGroup>& groups) {
  std::vector<int> part_of(graph.nodes.size(), -1);
  int parts = 0;
  const auto is_free = [&](int32_t node) { return part_of[static_cast<size_t>(node)] < 0; };
  for (const plugin::FusedGroup& group : groups) {
    if (!std::all_of(group.nodes.begin(), group.nodes.end(), is_free)) continue;
    for (const int32_t node : group.nodes) part_of[static_cast<size_t>(node)] = parts;
    ++parts;
  }
  for (int& part : part_of) part = part < 0 ? parts++ : part;
  const std::vector<NodeId> makers = producers(graph);
  std::vector<std::set<int>> before(static_cast<size_t>(parts));
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (const ValueId input : graph.nodes[node].inputs) {
      const NodeId maker = makers[static_cast<size_t>(input.index)];
      if (maker.is_none()) continue;
      const int part = part_of[static_cast<size_t>(maker.index)];
      if (part != part_of[node]) before[static_cast<size_t>(part_of[node])].insert(part);
    }
  }
  std::set<int> done;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (int part = 0; part < parts; ++part) {
      const std::set<int>& needed = before[static_cast<size_t>(part)];
      const bool is_ready = std::all_of(needed.begin(), needed.end(),
                                        [&](int other) { return done.contains(other); });
      if (is_ready && done.insert(part).second) has_changed = true;
    }
  }
  return static_cast<int>(done.size()) == parts;
}

// All values of the graph, by its reference kernels.
std::map<ValueId, Tensor> run(const Graph& graph, const ops::Registry& registry,
                              std::mt19937& random) {
  ThreadPool pool(1);
  std::map<ValueId, Tensor> values;
  std::normal_distribution<float> normal;
  for (const ValueId input : graph.inputs) {
    Tensor tensor(DataType::Float32, known_dims(graph, input));
    for (float& element : tensor.mutable_as<float>()) element = normal(random);
    values[input] = std::move(tensor);
  }
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(values.at(input));
    const std::vector<Tensor> outputs =
        ops::evaluate(*registry.find("", node.op), node, inputs, pool);
    for (size_t output = 0; output < outputs.size(); ++output) {
      values[node.outputs[output]] = outputs[output];
    }
  }
  return values;
}

void expect_equal(const Tensor& found, const Tensor& expected, const std::string& where) {
  const std::span<const float> left = found.as<float>();
  const std::span<const float> right = expected.as<float>();
  for (size_t index = 0; index < right.size(); ++index) {
    const bool is_equal =
        left[index] == right[index] || (std::isnan(left[index]) && std::isnan(right[index]));
    ASSERT_TRUE(is_equal) << where << " element " << index << ": " << left[index] << ", expected "
                          << right[index];
  }
}

// Computes each group by its expression, and compares it with the reference.
void expect_equal_results(const Graph& graph, const std::vector<plugin::FusedGroup>& groups,
                          const std::map<ValueId, Tensor>& values, const std::string& where) {
  for (const plugin::FusedGroup& group : groups) {
    EXPECT_TRUE(is_convex(graph, group.nodes)) << where;
    std::vector<const void*> inputs;
    for (const int32_t value : group.inputs) inputs.push_back(values.at({value}).data());
    std::vector<Tensor> results;
    std::vector<void*> outputs;
    for (const int32_t value : group.outputs) {
      results.emplace_back(DataType::Float32, known_dims(graph, {value}));
      // This number shows elements that no result writes.
      for (float& element : results.back().mutable_as<float>()) element = 1e30F;
    }
    for (Tensor& result : results) outputs.push_back(result.mutable_data());
    evaluate_group(group, inputs, outputs);
    for (size_t port = 0; port < results.size(); ++port) {
      expect_equal(results[port], values.at({group.outputs[port]}),
                   where + " value " + graph[ValueId{group.outputs[port]}].name);
    }
  }
}

TEST_F(FindGroups, RandomGraphsGiveLegalGroupsWithEqualResults) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = typed(random_graph(builder(13), random));
    const std::map<ValueId, Tensor> values = run(graph, all_ops(), random);
    const std::vector<plugin::FusedGroup> groups = find_groups(FusionGraph(graph));
    EXPECT_TRUE(can_all_run(graph, groups)) << "seed " << seed;
    expect_equal_results(graph, groups, values, "seed " + std::to_string(seed));
  }
}

TEST_F(FindGroups, RandomPartsGiveLegalGroupsWithEqualResults) {
  size_t with_parts = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = typed(random_parts(builder(9), random));
    const std::map<ValueId, Tensor> values = run(graph, all_ops(), random);
    const std::vector<plugin::FusedGroup> groups = find_groups(FusionGraph(graph));
    EXPECT_TRUE(can_all_run(graph, groups)) << "seed " << seed;
    expect_equal_results(graph, groups, values, "seed " + std::to_string(seed));
    with_parts += std::ranges::any_of(groups, [](const plugin::FusedGroup& group) {
      return group.results.size() > group.outputs.size();
    });
  }
  EXPECT_GT(with_parts, 200U);
}

}  // namespace
}  // namespace tessera::codegen
