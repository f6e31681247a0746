#include "codegen/lowering/fusion_role.h"

#include <map>

#include "ops/graph_test.h"
#include "ops/op_test.h"

namespace tessera::codegen {
namespace {

using Dims = std::vector<int64_t>;

Type typed(DataType type, const Dims& dims) { return Type::tensor(type, shape_from(dims)); }

// A graph of one node: inputs by name ("" is left out), constants among them, and the type of "y".
struct OneNode {
  const char* name;
  std::string op;
  int opset = 19;
  std::vector<std::pair<std::string, Type>> inputs;
  Type output;
  std::map<std::string, Tensor> constants = {};
  Attributes attributes = {};
};

Graph graph_of(const OneNode& row) {
  GraphBuilder builder(all_ops(), row.opset);
  std::vector<std::string> names;
  for (const auto& [name, type] : row.inputs) {
    names.push_back(name);
    if (row.constants.contains(name)) {
      builder.constant(name, row.constants.at(name));
    } else if (!name.empty()) {
      builder.input(name, type);
    }
  }
  builder.declare("y", row.output);
  return builder.node("node", row.op, names, {"y"}, row.attributes).output("y").graph();
}

FusionRole role_of(const OneNode& row) {
  const Graph graph = graph_of(row);
  return fusion_role(graph, graph.nodes[0]);
}

const Type kMatrixType = typed(DataType::Float32, {2, 3});
const Type kVector = typed(DataType::Float32, {3});
const Type kSix = typed(DataType::Float32, {6});
const Type kIntegers = typed(DataType::Int32, {2, 3});
const Type kAxes = typed(DataType::Int64, {1});
const Type kFlag = typed(DataType::Bool, {});

struct Accepted {
  OneNode node;
  FusionKind kind;
  std::vector<Dims> input_dims;
  std::vector<bool> reduced_axes;
};

void expect_roles(const std::vector<Accepted>& rows) {
  for (const Accepted& row : rows) {
    const FusionRole role = role_of(row.node);
    EXPECT_EQ(role.kind, row.kind) << row.node.name << ": " << role.refusal;
    EXPECT_EQ(role.input_dims, row.input_dims) << row.node.name;
    EXPECT_EQ(role.reduced_axes, row.reduced_axes) << row.node.name;
  }
}

TEST(FusionRole, SaysHowElementwiseNodesReadTheirInputs) {
  const Tensor seven = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{7});
  const Type scalar = typed(DataType::Float32, {});
  expect_roles({
      {{"scalars", "Add", 19, {{"a", scalar}, {"b", scalar}}, scalar},
       FusionKind::Elementwise,
       {{1}, {1}},
       {}},
      {{"broadcast", "Add", 19, {{"a", kMatrixType}, {"b", kVector}}, kMatrixType},
       FusionKind::Elementwise,
       {{2, 3}, {1, 3}},
       {}},
      {{"aligned by an attribute",
        "Add",
        6,
        {{"a", kMatrixType}, {"b", typed(DataType::Float32, {2})}},
        kMatrixType,
        {},
        [] {
          Attributes attributes = attributes_of({{"broadcast", 1}});
          attributes.set("axis", int64_t{0});
          return attributes;
        }()},
       FusionKind::Elementwise,
       {{2, 3}, {2, 1}},
       {}},
      {{"a constant divisor",
        "Div",
        19,
        {{"a", kIntegers}, {"b", kIntegers}},
        kIntegers,
        {{"b", seven}}},
       FusionKind::Elementwise,
       {{2, 3}, {}},
       {}},
      {{"only a type counts",
        "CastLike",
        19,
        {{"a", kMatrixType}, {"b", kAxes}},
        typed(DataType::Int64, {2, 3})},
       FusionKind::Elementwise,
       {{2, 3}, {}},
       {}},
      {{"bounds of one element",
        "Clip",
        13,
        {{"a", kMatrixType}, {"", {}}, {"c", typed(DataType::Float32, {1})}},
        kMatrixType},
       FusionKind::Elementwise,
       {{2, 3}, {}, {1, 1}},
       {}},
      {{"a simple exponent",
        "Pow",
        13,
        {{"a", kMatrixType}, {"b", kVector}},
        kMatrixType,
        {{"b", floats({}, {2})}}},
       FusionKind::Elementwise,
       {{2, 3}, {}},
       {}},
  });
}

TEST(FusionRole, SaysHowReductionsReadTheirInputs) {
  expect_roles({
      {{"constant axes",
        "ReduceSum",
        13,
        {{"a", kMatrixType}, {"axes", kAxes}},
        typed(DataType::Float32, {2, 1}),
        {{"axes", ints({1}, {-1})}}},
       FusionKind::Reduction,
       {{2, 3}, {}},
       {false, true}},
      {{"all axes",
        "ReduceMax",
        11,
        {{"a", kMatrixType}},
        typed(DataType::Float32, {}),
        {},
        attributes_of({{"keepdims", 0}})},
       FusionKind::Reduction,
       {{2, 3}},
       {true, true}},
      {{"no axes",
        "ReduceL1",
        18,
        {{"a", kMatrixType}},
        kMatrixType,
        {},
        attributes_of({{"noop_with_empty_axes", 1}})},
       FusionKind::Elementwise,
       {{2, 3}},
       {}},
      {{"an axis of one element",
        "ReduceSum",
        11,
        {{"a", typed(DataType::Float32, {2, 1, 3})}},
        kMatrixType,
        {},
        [] {
          Attributes attributes = attributes_of({{"axes", {1}}});
          attributes.set("keepdims", int64_t{0});
          return attributes;
        }()},
       FusionKind::Elementwise,
       {{2, 3}},
       {}},
  });
}

TEST(FusionRole, SaysHowNormalizationsReadTheirInputs) {
  expect_roles({
      {{"one element per channel",
        "InstanceNormalization",
        6,
        {{"a", kMatrixType}, {"b", kVector}, {"c", kVector}},
        kMatrixType},
       FusionKind::Elementwise,
       {{2, 3}, {1, 3}, {1, 3}},
       {}},
      {{"old softmax",
        "Softmax",
        11,
        {{"a", typed(DataType::Float32, {2, 3, 4})}},
        typed(DataType::Float32, {2, 3, 4})},
       FusionKind::Normalization,
       {{2, 3, 4}},
       {false, true, true}},
      {{"new softmax",
        "Softmax",
        13,
        {{"a", typed(DataType::Float32, {2, 3, 4})}},
        typed(DataType::Float32, {2, 3, 4}),
        {},
        attributes_of({{"axis", 1}})},
       FusionKind::Normalization,
       {{2, 3, 4}},
       {false, true, false}},
      {{"layer", "LayerNormalization", 17, {{"a", kMatrixType}, {"b", kVector}}, kMatrixType},
       FusionKind::Normalization,
       {{2, 3}, {1, 3}},
       {false, true}},
      {{"groups of channels",
        "GroupNormalization",
        21,
        {{"a", typed(DataType::Float32, {2, 6, 4})}, {"b", kSix}, {"c", kSix}},
        typed(DataType::Float32, {2, 6, 4}),
        {},
        attributes_of({{"num_groups", 2}})},
       FusionKind::Normalization,
       {{2, 2, 3, 4}, {1, 2, 3, 1}, {1, 2, 3, 1}},
       {false, false, true, true}},
  });
}

TEST(FusionRole, SaysHowViewsReadTheirInputs) {
  const Tensor no = bools({}, {0});
  expect_roles({
      {{"a view", "Reshape", 19, {{"a", kMatrixType}, {"b", kAxes}}, typed(DataType::Float32, {6})},
       FusionKind::View,
       {{2, 3}, {}},
       {}},
      {{"inference",
        "Dropout",
        13,
        {{"a", kMatrixType}, {"", {}}, {"c", kFlag}},
        kMatrixType,
        {{"c", no}}},
       FusionKind::View,
       {{2, 3}, {}, {}},
       {}},
  });
}

struct Refused {
  OneNode node;
  std::string refusal;
};

TEST(FusionRole, SaysWhyANodeHasNone) {
  const Type empty = typed(DataType::Float32, {0, 3});
  const Type unknown = Type::tensor(DataType::Float32, Shape{Dim::symbol("n"), 3});
  const Tensor zero = Tensor::from<int32_t>(DataType::Int32, {1}, std::vector<int32_t>{0});
  const Refused rows[] = {
      {{"no row", "Acos", 19, {{"a", kMatrixType}}, kMatrixType}, "no expression computes this op"},
      {{"another type", "Erf", 13, {{"a", kIntegers}}, kIntegers},
       "no expression computes it for elements of int32"},
      {{"unknown sizes", "Relu", 14, {{"a", unknown}}, unknown},
       "takes tensors of known shape only"},
      {{"no elements", "Relu", 14, {{"a", empty}}, empty}, "has no elements"},
      {{"unknown divisor", "Div", 14, {{"a", kIntegers}, {"b", kIntegers}}, kIntegers},
       "divides integers by one constant number only"},
      {{"zero divisor", "Mod", 13, {{"a", kIntegers}, {"b", kIntegers}}, kIntegers, {{"b", zero}}},
       "divides integers by zero"},
      {{"integer powers", "Pow", 13, {{"a", kIntegers}, {"b", kIntegers}}, kIntegers},
       "raises integers to one constant power from 1 to 64 only"},
      {{"unknown axes", "ReduceSum", 13, {{"a", kMatrixType}, {"b", kAxes}}, kMatrixType},
       "its axes are not known before running"},
      {{"unknown mode", "Dropout", 13, {{"a", kMatrixType}, {"", {}}, {"c", kFlag}}, kMatrixType},
       "'training_mode' is not known before running"},
      {{"training",
        "Dropout",
        13,
        {{"a", kMatrixType}, {"", {}}, {"c", kFlag}},
        kMatrixType,
        {{"c", bools({}, {1})}}},
       "drops elements at random"},
  };
  for (const Refused& row : rows) {
    const FusionRole role = role_of(row.node);
    EXPECT_EQ(role.kind, FusionKind::None) << row.node.name;
    EXPECT_EQ(role.refusal, row.refusal) << row.node.name;
  }
}

TEST(FusionRole, OtherOutputsMustNotBeRead) {
  for (const bool is_read : {false, true}) {
    GraphBuilder builder(all_ops(), 12);
    builder.input("x", kMatrixType);
    builder.declare("y", kMatrixType);
    builder.declare("mask", typed(DataType::Bool, {2, 3}));
    builder.node("node", "Dropout", {"x"}, {"y", "mask"}).output("y");
    if (is_read) builder.node("not", "Not", {"mask"}, {"z"}).output("z");
    const Graph graph = builder.graph();
    const FusionRole role = fusion_role(graph, graph.nodes[0]);
    EXPECT_EQ(role.kind, is_read ? FusionKind::None : FusionKind::View);
    EXPECT_EQ(role.refusal, is_read ? "more than its first output is read" : "");
  }
}

}  // namespace
}  // namespace tessera::codegen
