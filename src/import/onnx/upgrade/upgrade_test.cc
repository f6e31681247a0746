#include "import/onnx/upgrade/upgrade.h"

#include "import/onnx/upgrade/upgrade_test.h"
#include "ops/schema.h"

namespace tessera::onnx_import {
namespace {

const UpgradeCase kUpgradeCases[] = {
    {"consumed_inputs has no meaning",
     "Relu",
     1,
     [](auto& node, auto&) { set_ints(node, "consumed_inputs", {0}); },
     {"Relu 6 (x)"}},
    {"without it", "Tanh", 5, [](auto&, auto&) {}, {"Tanh 6 (x)"}},
    {"the same definition since operator set 1",
     "Softmax",
     1,
     [](auto&, auto&) {},
     {"Softmax 1 axis=1 (x)"}},
    {"arithmetic keeps its broadcasting",
     "Add",
     1,
     [](auto& node, auto&) {
       node.add_input("x");
       attribute(node, "broadcast").set_i(1);
       attribute(node, "axis").set_i(2);
     },
     {"Add 6 axis=2 broadcast=1 (x, x)"}},
    {"two inputs and more",
     "Max",
     4,
     [](auto& node, auto&) { node.add_input("x"); },
     {"Max 6 (x, x)"}},
    {"other defaults", "Selu", 1, [](auto&, auto&) {}, {"Selu 6 alpha=1.6732 gamma=1.0507 (x)"}},
    {"the same with values",
     "Selu",
     2,
     [](auto& node, auto&) { attribute(node, "alpha").set_f(3); },
     {"Selu 6 alpha=3 gamma=1.0507 (x)"}},
    {"the name of a type",
     "Cast",
     1,
     [](auto& node, auto&) { attribute(node, "to").set_s("DOUBLE"); },
     {"Cast 6 to=11 (x)"}},
    {"the name of a type in lower case",
     "Cast",
     5,
     [](auto& node, auto&) { attribute(node, "to").set_s("int32"); },
     {"Cast 6 to=6 (x)"}},
    {"no bounds", "Clip", 1, [](auto&, auto&) {}, {"Clip 6 max=inf min=-inf (x)"}},
    {"one bound",
     "Clip",
     1,
     [](auto& node, auto&) { attribute(node, "max").set_f(6); },
     {"Clip 6 max=6 min=-inf (x)"}},
    {"an op of ONNX Runtime, before ONNX had it",
     "LayerNormalization",
     14,
     [](auto& node, auto&) { node.add_input("x"); },
     {"LayerNormalization 17 axis=-1 epsilon=1e-05 stash_type=1 (x, x)"}},
    {"axis 1 unless given", "Concat", 3, [](auto&, auto&) {}, {"Concat 4 axis=1 (x)"}},
    {"a given axis",
     "Concat",
     1,
     [](auto& node, auto&) { attribute(node, "axis").set_i(0); },
     {"Concat 4 axis=0 (x)"}},
    {"paddings, all beginnings first",
     "Pad",
     1,
     [](auto& node, auto&) { set_ints(node, "paddings", {0, 0, 1, 2, 0, 0, 3, 4}); },
     {"Pad 2 mode=constant pads=[0 0 1 2 0 0 3 4] value=0 (x)"}},
    {"a shape as an attribute",
     "Reshape",
     4,
     [](auto& node, auto&) { set_ints(node, "shape", {0, -1}); },
     {"Reshape 5 (x, int64 2 [0 -1])"}},
    {"lengths as an attribute",
     "Split",
     1,
     [](auto& node, auto&) {
       attribute(node, "axis").set_i(1);
       set_ints(node, "split", {3});
     },
     {"Split 2 axis=1 split=[3] (x)"}},
    {"lengths as an input of the type of the data",
     "Split",
     1,
     [](auto& node, auto& graph) {
       attribute(node, "axis").set_i(1);
       add_weight(graph, "lengths", {1}, 3);
       node.add_input("lengths");
     },
     {"Split 2 axis=1 split=[3] (x)"}},
    {"copies along an axis",
     "Tile",
     2,
     [](auto& node, auto& graph) {
       add_weight(graph, "tiles", {}, 3);
       add_weight(graph, "axis", {1}, 1);
       node.add_input("tiles");
       node.add_input("axis");
     },
     {"Concat 4 axis=1 (x, x, x)"}},
    {"copies, the number in a Constant",
     "Tile",
     2,
     [](auto& node, auto& graph) {
       onnx::TensorProto& two = add_weight(graph, "two", {}, 2);
       *attribute(add_node(graph, "Constant", {}, {"tiles"}), "value").mutable_t() = two;
       add_weight(graph, "axis", {}, 0);
       node.add_input("tiles");
       node.add_input("axis");
     },
     {"Constant 1 value=float32 [2] ()", "Concat 4 axis=0 (x, x)"}},
    {"statistics and modes stay",
     "BatchNormalization",
     1,
     [](auto& node, auto& graph) {
       for (const char* name : {"s", "b", "m", "v"}) {
         add_input(graph, name, {3});
         node.add_input(name);
       }
       attribute(node, "is_test").set_i(1);
       set_ints(node, "consumed_inputs", {0, 0, 0, 1, 1});
     },
     {"BatchNormalization 6 epsilon=1e-05 is_test=1 momentum=0.9 spatial=1 (x, s, b, m, v)"}},
    {"a misspelt default",
     "GRU",
     1,
     [](auto& node, auto& graph) {
       for (const char* name : {"w", "r"}) {
         add_input(graph, name, {1, 3, 1});
         node.add_input(name);
       }
       attribute(node, "hidden_size").set_i(1);
       node.add_output("h");
     },
     {"GRU 3 direction=forward hidden_size=1 linear_before_reset=0 output_sequence=0 (x, w, r)"}},
};

TEST(Upgrade, NodesOfOldVersionsBecomeNewerOnes) {
  for (const UpgradeCase& row : kUpgradeCases) {
    SCOPED_TRACE(std::string(row.op) + ": " + row.what);
    const ImportedModel model = import_with_all_ops(model_of(row));
    EXPECT_EQ(node_texts(model.graph), row.expected);
    EXPECT_EQ(model.opsets.at(""), row.opset);
    EXPECT_EQ(model.graph.nodes.back().name, "n");
  }
}

struct RefusalCase {
  UpgradeCase node;
  ErrorKind kind;
  std::vector<std::string> parts;
};

const RefusalCase kRefusalCases[] = {
    {{"attribute of a newer version",
      "Relu",
      1,
      [](auto& node, auto&) { attribute(node, "alpha").set_f(1); },
      {}},
     ErrorKind::InvalidModel,
     {"node 'n' (Relu)", "Relu version 1 has no such attribute"}},
    {{"consumed_inputs in a newer version",
      "Relu",
      6,
      [](auto& node, auto&) { set_ints(node, "consumed_inputs", {0}); },
      {}},
     ErrorKind::InvalidModel,
     {"Relu version 6 has no such attribute"}},
    {{"a number as the type",
      "Cast",
      5,
      [](auto& node, auto&) { attribute(node, "to").set_i(1); },
      {}},
     ErrorKind::InvalidModel,
     {"attribute 'to'", "expected string, found int"}},
    {{"no type", "Cast", 5, [](auto&, auto&) {}, {}},
     ErrorKind::InvalidModel,
     {"attribute 'to'", "Cast version 1 requires it"}},
    {{"an unknown type",
      "Cast",
      1,
      [](auto& node, auto&) { attribute(node, "to").set_s("REAL"); },
      {}},
     ErrorKind::InvalidModel,
     {"node 'n' (Cast)", "Cast version 1", "'REAL'"}},
    {{"no shape", "Reshape", 1, [](auto&, auto&) {}, {}},
     ErrorKind::InvalidModel,
     {"node 'n' (Reshape)", "Reshape version 1", "'shape'"}},
    {{"the shape as an input",
      "Reshape",
      1,
      [](auto& node, auto& graph) {
        add_weight(graph, "shape", {1});
        node.add_input("shape");
      },
      {}},
     ErrorKind::InvalidModel,
     {"Reshape version 1 takes at most 1 input"}},
    {{"pads of a newer version",
      "Pad",
      1,
      [](auto& node, auto&) { set_ints(node, "pads", {0, 0, 0, 0, 0, 0, 0, 0}); },
      {}},
     ErrorKind::InvalidModel,
     {"Pad version 1"}},
    {{"no axis", "Split", 1, [](auto&, auto&) {}, {}},
     ErrorKind::Unsupported,
     {"node 'n' (Split)", "Split version 1", "'axis'"}},
    {{"lengths twice",
      "Split",
      1,
      [](auto& node, auto& graph) {
        attribute(node, "axis").set_i(1);
        set_ints(node, "split", {3});
        add_weight(graph, "lengths", {1}, 3);
        node.add_input("lengths");
      },
      {}},
     ErrorKind::InvalidModel,
     {"found both"}},
    {{"lengths that are no whole numbers",
      "Split",
      1,
      [](auto& node, auto& graph) {
        attribute(node, "axis").set_i(1);
        add_weight(graph, "lengths", {1}, 1.5);
        node.add_input("lengths");
      },
      {}},
     ErrorKind::InvalidModel,
     {"whole numbers", "1.5"}},
    {{"copies that a run computes",
      "Tile",
      1,
      [](auto& node, auto& graph) {
        add_input(graph, "tiles", {1});
        add_weight(graph, "axis", {1}, 1);
        node.add_input("tiles");
        node.add_input("axis");
      },
      {}},
     ErrorKind::Unsupported,
     {"Tile version 1", "input 1 is computed in a run"}},
    {{"no copies",
      "Tile",
      1,
      [](auto& node, auto& graph) {
        add_weight(graph, "tiles", {1}, 0);
        add_weight(graph, "axis", {1}, 1);
        node.add_input("tiles");
        node.add_input("axis");
      },
      {}},
     ErrorKind::InvalidModel,
     {"at least 1 copy, found 0"}},
    {{"more copies than a graph should have",
      "Tile",
      1,
      [](auto& node, auto& graph) {
        add_weight(graph, "tiles", {1}, 1e9F);
        add_weight(graph, "axis", {1}, 1);
        node.add_input("tiles");
        node.add_input("axis");
      },
      {}},
     ErrorKind::Unsupported,
     {"at most 1024 copies, found 1000000000"}},
};

TEST(Upgrade, WrongNodesOfOldVersionsAreRefused) {
  for (const RefusalCase& row : kRefusalCases) {
    SCOPED_TRACE(std::string(row.node.op) + ": " + row.node.what);
    expect_error([&] { import_with_all_ops(model_of(row.node)); }, row.kind, row.parts);
  }
}

TEST(Upgrade, WholeNumbersOfNorms) {
  ops::Op newer = {.name = "LpPool",
                   .versions = {2},
                   .inputs = {{"X", "T"}},
                   .outputs = {{"Y", "T"}},
                   .attributes = {{"p", AttributeKind::Int, int64_t{2}},
                                  required_attribute("kernel_shape", AttributeKind::Ints)}};
  ops::Registry registry;
  registry.add(newer);
  const OldOp* old = find_old_op(registry, "", "LpPool", 1);
  ASSERT_NE(old, nullptr);
  Graph graph;
  Insertions insertions(graph, registry, [](const std::string& name) { return name; });
  Node node = {.name = "n", .op = "LpPool", .version = 1};
  node.attributes.set("kernel_shape", std::vector<int64_t>{2});
  node.inputs = {add_value(graph, {.name = "x"})};
  node.outputs = {add_value(graph, {.name = "y"})};
  Node other = node;
  ops::complete(definition_of(*old, registry), node);
  upgrade(*old, node, 1, insertions);
  EXPECT_EQ(node_text(graph, node), "LpPool 2 kernel_shape=[2] p=2 (x)");
  other.attributes.set("p", 1.5F);
  expect_error([&] { upgrade(*old, other, 1, insertions); }, ErrorKind::Unsupported,
               {"node 'n' (LpPool)", "LpPool version 1", "1.5", "whole numbers"});
}

TEST(Upgrade, HoldsBeforeTheNextVersionOnly) {
  const ops::Registry& registry = all_ops();
  EXPECT_NE(find_old_op(registry, "", "Reshape", 4), nullptr);
  EXPECT_EQ(find_old_op(registry, "", "Reshape", 5), nullptr);
  EXPECT_EQ(find_old_op(registry, "", "Reshape", 0), nullptr);
  EXPECT_EQ(find_old_op(registry, "com.example", "Relu", 1), nullptr);
  EXPECT_EQ(find_old_op(ops::Registry(), "", "Relu", 1), nullptr) << "no newer version";
  ops::Registry own;
  own.add({.name = "Relu", .versions = {1, 6}});
  EXPECT_EQ(find_old_op(own, "", "Relu", 1), nullptr) << "the table of ops has it";
}

TEST(Upgrade, OldModelsBecomeModelsOfOneOperatorSet) {
  constexpr int kStated = 6;
  for (const ops::Op* op : all_ops().all()) {
    if (!op->domain.empty() || !ops::version_in(*op, kStated)) continue;
    for (int opset = 1; opset < kStated; ++opset) {
      const auto version = ops::version_in(*op, opset);
      EXPECT_TRUE(!version || version == ops::version_in(*op, kStated)) << op->name;
    }
  }
}

TEST(Upgrade, NamesOfConstantsAreUnique) {
  onnx::ModelProto model = make_model(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 2});
  for (const char* output : {"y", "z"}) {
    set_ints(add_node(graph, "Reshape", {"x"}, {output}, "n"), "shape", {-1});
  }
  add_node(graph, "Relu", {"y"}, {"n#shape"}, "relu");
  for (const char* output : {"n#shape", "z"}) add_output(graph, output);
  const Graph read = import_with_all_ops(model).graph;
  EXPECT_THAT(read[read.nodes[0].inputs[1]].name, testing::StartsWith("n#shape#"));
  EXPECT_EQ(read[read.outputs[0]].name, "n#shape");
  EXPECT_EQ(explain_illegal(read), "");
}

TEST(Upgrade, ModelsBeforeOperatorSetsMeanTheFirst) {
  onnx::ModelProto model = relu_model();
  model.set_ir_version(1);
  model.clear_opset_import();
  const ImportedModel read = import_with_all_ops(model);
  EXPECT_EQ(read.opsets.at(""), 1);
  EXPECT_EQ(read.ir_version, 1);
  EXPECT_EQ(read.graph.nodes[0].version, 6);
}

TEST(Upgrade, InNestedGraphsErrorsNameTheNodeAround) {
  onnx::ModelProto model = make_model(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  set_type(*graph.add_input(), "c", {1}, onnx::TensorProto::BOOL);
  onnx::NodeProto& node = add_node(graph, "If", {"c"}, {"y"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto& branch = *attribute(node, name).mutable_g();
    add_node(branch, "Reshape", {"x"}, {name}, "r");
    add_output(branch, name);
  }
  add_output(graph, "y");
  expect_error([&] { import_with_all_ops(model); }, ErrorKind::InvalidModel,
               {"node 'if' (If), then_branch, node 'r' (Reshape)", "Reshape version 1"});
}

}  // namespace
}  // namespace tessera::onnx_import
