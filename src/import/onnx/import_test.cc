#include "import/onnx/import.h"

#include <algorithm>
#include <set>

#include "import/onnx/test_models.h"
#include "ops/control_flow/bodies.h"

namespace tessera::onnx_import {
namespace {

TEST(Import, ReadsNodesValuesAndHeader) {
  onnx::ModelProto model = relu_model();
  model.set_producer_name("maker");
  model.set_producer_version("2");
  const ImportedModel imported = import(model);
  EXPECT_EQ(imported.ir_version, 8);
  EXPECT_EQ(imported.producer, "maker 2");
  EXPECT_EQ(imported.opsets.at(""), 13);
  ASSERT_EQ(imported.graph.nodes.size(), 1U);
  EXPECT_EQ(imported.graph.nodes[0].version, 13);
  EXPECT_EQ(text(value(imported.graph, "x").type), "float32 2");
  EXPECT_EQ(imported.graph.outputs.size(), 1U);
}

TEST(Import, VersionIsTheNewestThatTheOperatorSetContains) {
  onnx::ModelProto model = relu_model();
  model.mutable_opset_import(0)->set_version(12);
  model.mutable_opset_import(0)->set_domain("ai.onnx");
  EXPECT_EQ(import(model).graph.nodes[0].version, 7);
}

TEST(Import, OrdersNodesThatAreNot) {
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_node(graph, "Relu", {"b"}, {"c"});
  add_node(graph, "Relu", {"a"}, {"b"});
  add_input(graph, "a");
  EXPECT_THAT(node_names(import(model).graph), ElementsAre("b", "c"));
}

TEST(Import, NodesAreNamedAfterTheirFirstOutput) {
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x");
  add_node(graph, "Relu", {"x"}, {"a"}, "same");
  add_node(graph, "Relu", {"x"}, {"b"}, "same");
  add_node(graph, "Relu", {"x"}, {"c"});
  add_node(graph, "Relu", {"x"}, {"d"}, "e");
  add_node(graph, "Relu", {"x"}, {"e"});
  EXPECT_THAT(node_names(import(model).graph), ElementsAre("same", "b", "c", "e", "e#2"));
}

TEST(Import, NamesMayHoldAnyBytes) {
  const std::string odd("\xFF/\0\n\xC3", 5);
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), odd);
  add_node(*model.mutable_graph(), "Relu", {odd}, {odd + "2"}, odd);
  const ImportedModel imported = import(model);
  EXPECT_EQ(imported.graph.nodes[0].name, odd);
  EXPECT_FALSE(find_value(imported.graph, odd + "2").is_none());
}

TEST(Import, InputWithAnInitializerIsAConstant) {
  for (const int ir_version : {3, 8}) {
    onnx::ModelProto model = relu_model();
    model.set_ir_version(ir_version);
    add_input(*model.mutable_graph(), "w", {2});
    add_weight(*model.mutable_graph(), "w", {2}, 7);
    const ImportedModel imported = import(model);
    ASSERT_EQ(imported.graph.inputs.size(), 1U);
    EXPECT_EQ(imported.graph[imported.graph.inputs[0]].name, "x");
    EXPECT_THAT(value(imported.graph, "w").constant.as<float>(), ElementsAre(7, 7));
  }
}

TEST(Import, InitializersThatNothingReadsAreLeftOut) {
  constexpr void (*kSpoil[])(onnx::TensorProto& tensor) = {
      [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::STRING); },
      [](auto& tensor) { tensor.set_data_type(onnx::TensorProto::INT4); },
      [](auto& tensor) { tensor.set_raw_data("abc"); }, [](auto& tensor) { tensor.add_dims(-1); },
      [](auto& tensor) {
        tensor.set_data_location(onnx::TensorProto::EXTERNAL);
        auto& entry = *tensor.add_external_data();
        entry.set_key("location");
        entry.set_value("lost.bin");
      }};
  for (const auto spoil : kSpoil) {
    onnx::ModelProto model = relu_model();
    spoil(add_weight(*model.mutable_graph(), "w", {2}));
    const ImportedModel imported = import(model);
    EXPECT_TRUE(find_value(imported.graph, "w").is_none());
    // A reader, a nested graph or an output needs it; an input of its name would be fed.
    onnx::ModelProto read = model;
    add_node(*read.mutable_graph(), "Relu", {"w"}, {"z"});
    EXPECT_THROW(import(read), Error);
    onnx::ModelProto fed = model;
    add_input(*fed.mutable_graph(), "w", {2});
    EXPECT_THROW(import(fed), Error);
    onnx::ModelProto nested = model;
    onnx::NodeProto& node = add_node(*nested.mutable_graph(), "If", {"x"}, {"z"});
    for (const char* name : {"then_branch", "else_branch"}) {
      onnx::AttributeProto& branch = *node.add_attribute();
      branch.set_name(name);
      branch.set_type(onnx::AttributeProto::GRAPH);
      add_output(*branch.mutable_g(), "w");
    }
    EXPECT_THROW(import(nested), Error);
    add_output(*model.mutable_graph(), "w");
    EXPECT_THROW(import(model), Error);
  }
}

TEST(Import, AFreeInputIsFedThoughTheFileHasAValueForIt) {
  onnx::ModelProto model = relu_model();
  add_input(*model.mutable_graph(), "w", {2});
  add_weight(*model.mutable_graph(), "w", {2}, 7);
  add_weight(*model.mutable_graph(), "inner", {2}, 7);
  add_output(*model.mutable_graph(), "inner");
  const auto import_with = [&](const std::string& free_input) {
    return import_onnx_bytes(model.SerializeAsString(), "", test_registry(),
                             Log([](const std::string&) {}), "the given bytes",
                             {.free_inputs = {free_input}});
  };
  const ImportedModel imported = import_with("w");
  ASSERT_EQ(imported.graph.inputs.size(), 2U);
  EXPECT_EQ(imported.graph[imported.graph.inputs[1]].name, "w");
  EXPECT_FALSE(value(imported.graph, "w").is_constant());
  EXPECT_TRUE(value(imported.graph, "inner").is_constant());
  for (const char* const name : {"x", "inner", "nothing"}) {
    expect_error([&] { import_with(name); }, ErrorKind::InvalidArgument,
                 {"free input '" + std::string(name) + "'", "found none of this name"});
  }
}

TEST(Import, OptionalInputsAndOutputsMayBeLeftOut) {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_node(*model.mutable_graph(), "Clip", {"x", "", "x"}, {"y", "", "z"});
  add_node(*model.mutable_graph(), "Clip", {"x", "", ""}, {"w", "", ""});
  const ImportedModel imported = import(model);
  const Node& first = imported.graph.nodes[0];
  EXPECT_TRUE(first.inputs[1].is_none());
  EXPECT_FALSE(first.inputs[2].is_none());
  EXPECT_TRUE(first.outputs[1].is_none());
  EXPECT_EQ(imported.graph.nodes[1].inputs.size(), 1U);
  EXPECT_EQ(imported.graph.nodes[1].outputs.size(), 1U);
}

TEST(Import, DefaultsOfAttributesAreFilledIn) {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_node(*model.mutable_graph(), "Elu", {"x"}, {"y"});
  EXPECT_EQ(import(model).graph.nodes[0].attributes.get_float("alpha"), 1);
}

TEST(Import, CarriesTheNotesOfNodes) {
  onnx::ModelProto model = relu_model();
  const auto note = [&](const char* key, const char* text) {
    onnx::StringStringEntryProto& entry =
        *model.mutable_graph()->mutable_node(0)->add_metadata_props();
    entry.set_key(key);
    entry.set_value(text);
  };
  note("layer", "encoder");
  note("block", "3");
  const ImportedModel imported = import(model);
  EXPECT_THAT(imported.graph.nodes[0].metadata,
              ElementsAre(std::pair("block", "3"), std::pair("layer", "encoder")));
}

TEST(Import, UnknownDimensionsAreSymbols) {
  onnx::ModelProto model = relu_model();
  auto& shape = *model.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.clear_dim();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim();
  shape.add_dim()->set_dim_value(-1);
  shape.add_dim()->set_dim_value(0);
  EXPECT_EQ(text(value(import(model).graph, "x").type), "float32 batchxx[1]xx[2]x0");
}

TEST(Import, NoTwoDimensionsAreOneSymbol) {
  onnx::ModelProto model = relu_model();
  add_input(*model.mutable_graph(), "z");
  const auto set_dims = [](onnx::ValueInfoProto& value, const std::vector<std::string>& names) {
    auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.clear_dim();
    for (const std::string& name : names) shape.add_dim()->set_dim_param(name);
  };
  set_dims(*model.mutable_graph()->mutable_input(0), {"N", "?", "N", "?", "M", "N+1", "N+1"});
  set_dims(*model.mutable_graph()->mutable_input(1), {"N", "?", "M"});
  set_dims(*model.mutable_graph()->mutable_output(0), {"N", "unk"});
  const Graph graph = import(model).graph;
  EXPECT_EQ(text(value(graph, "x").type), "float32 Nxx[1]xNxx[3]xMxx[5]xx[6]");
  EXPECT_EQ(text(value(graph, "z").type), "float32 Nxz[1]xM");
  EXPECT_EQ(text(value(graph, "y").type), "undefined Nxunk");
  std::set<std::string> symbols;
  for (const char* name : {"x", "z", "y"}) {
    for (const Dim& dim : *value(graph, name).type.shape) symbols.insert(dim.symbol());
  }
  EXPECT_EQ(symbols.size(), 12U);
}

TEST(Import, TypesThatAreNoTensorsAreCarried) {
  onnx::ModelProto model = relu_model();
  onnx::ValueInfoProto& input = *model.mutable_graph()->add_input();
  input.set_name("list");
  auto& content = *input.mutable_type()->mutable_sequence_type()->mutable_elem_type();
  content.mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  EXPECT_EQ(text(value(import(model).graph, "list").type), "sequence(int64 ?)");
}

// Inputs x and condition c; an If whose branches read x, then_branch through another If.
onnx::ModelProto nested_model() {
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::NodeProto& node = add_node(graph, "If", {"c"}, {"y"}, "if");
  add_node(graph, "Relu", {"x"}, {"r"});
  add_input(graph, "x");
  set_type(*graph.add_input(), "c", {}, onnx::TensorProto::BOOL);
  add_output(graph, "y");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    add_node(*attribute.mutable_g(), "Add", {"r", "x"}, {"sum"});
    add_output(*attribute.mutable_g(), "sum");
  }
  onnx::GraphProto& then_graph = *node.mutable_attribute(0)->mutable_g();
  onnx::NodeProto inner = node;
  inner.set_name("inner");
  inner.set_output(0, "chosen");
  *then_graph.add_node() = inner;
  then_graph.mutable_node(0)->set_output(0, "first");
  then_graph.mutable_output(0)->set_name("chosen");
  return model;
}

TEST(Import, NestedGraphsCaptureWhatTheyRead) {
  const ImportedModel imported = import(nested_model());
  EXPECT_THAT(node_names(imported.graph), ElementsAre("r", "if")) << "the If needs r";
  const Node& node = imported.graph.nodes[1];
  ASSERT_EQ(node.bodies.size(), 2U);
  EXPECT_EQ(node.bodies[0].attribute, "then_branch");
  const Graph& branch = node.bodies[0].graph;
  ASSERT_EQ(branch.captures.size(), 3U) << "r and x, and c for the inner one";
  EXPECT_EQ(imported.graph[branch.captures[0].outer].name, "r");
  EXPECT_EQ(branch[branch.captures[0].inner].name, "r");
  const Graph& innermost = branch.nodes[1].bodies[0].graph;
  EXPECT_EQ(innermost.captures.size(), 2U);
  EXPECT_EQ(explain_illegal(imported.graph), "");
}

TEST(Import, TheSizesThatNestedGraphsDeclareAreKept) {
  onnx::ModelProto model = nested_model();
  const std::string name = ops::declared_type_name("else_branch", 0);
  EXPECT_FALSE(import(model).graph.nodes[1].attributes.has(name));
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  onnx::GraphProto& branch = *node.mutable_attribute(1)->mutable_g();
  branch.clear_output();
  set_type(*branch.add_output(), "sum", {1, 5});
  auto& tensor = *branch.mutable_output(0)->mutable_type()->mutable_tensor_type();
  tensor.mutable_shape()->mutable_dim(0)->set_dim_param("n");
  const Graph graph = import(model).graph;
  const Type* const declared = graph.nodes[1].attributes.find_type(name);
  ASSERT_NE(declared, nullptr);
  EXPECT_EQ(text(*declared), "float32 ?x5");
  EXPECT_FALSE(graph.nodes[1].attributes.has(ops::declared_type_name("then_branch", 0)));
}

// Which of the values called `name` the branch `branch` of the If in `graph` reads: "captured", or
// how the branch makes it.
std::string definition_inside(const Graph& graph, size_t branch, const std::string& name) {
  const Graph& inside = graph.nodes.back().bodies[branch].graph;
  const ValueId id = find_value(inside, name);
  if (id.is_none()) return "none";
  for (const Capture& capture : inside.captures) {
    if (capture.inner == id) return "captured";
  }
  if (inside[id].is_constant()) return "constant";
  return std::ranges::find(inside.inputs, id) != inside.inputs.end() ? "input" : "node";
}

struct HidingCase {
  const char* what;
  void (*change)(onnx::GraphProto& graph, onnx::GraphProto& branch);
  const char* name;
  const char* expected;
};

// The innermost definition counts.
const HidingCase kHiding[] = {
    {"a constant hides an input", [](auto&, auto& branch) { add_weight(branch, "x", {2}); }, "x",
     "constant"},
    {"an input hides an input", [](auto&, auto& branch) { add_input(branch, "x"); }, "x", "input"},
    {"a constant hides a node", [](auto&, auto& branch) { add_weight(branch, "r", {2}); }, "r",
     "constant"},
    {"an input hides a node", [](auto&, auto& branch) { add_input(branch, "r"); }, "r", "input"},
    {"a constant hides a constant",
     [](auto& graph, auto& branch) {
       add_weight(graph, "w", {2});
       add_weight(branch, "w", {3});
       add_node(branch, "Relu", {"w"}, {"v"});
     },
     "w", "constant"},
    {"an input hides a constant",
     [](auto& graph, auto& branch) {
       add_weight(graph, "w", {2});
       add_input(branch, "w");
     },
     "w", "input"},
    {"a node may have the name of what its If makes",
     [](auto&, auto& branch) { add_node(branch, "Relu", {"x"}, {"y"}); }, "y", "node"},
    {"nothing hides it", [](auto&, auto&) {}, "x", "captured"},
};

TEST(Import, NestedGraphsMayHideValuesAroundThem) {
  for (const HidingCase& row : kHiding) {
    SCOPED_TRACE(row.what);
    onnx::ModelProto model = nested_model();
    onnx::GraphProto& graph = *model.mutable_graph();
    row.change(graph, *graph.mutable_node(0)->mutable_attribute(1)->mutable_g());
    const ImportedModel imported = import(model);
    EXPECT_EQ(definition_inside(imported.graph, 1, row.name), row.expected);
    EXPECT_EQ(definition_inside(imported.graph, 0, "x"), "captured") << "the other branch";
    EXPECT_EQ(explain_illegal(imported.graph), "");
  }
}

TEST(Import, WellKnownDomainsNeedNoImport) {
  const auto warnings_of = [](const onnx::ModelProto& model, const ops::Registry& registry) {
    std::vector<std::string> warnings;
    const Log log([&](const std::string& message) { warnings.push_back(message); });
    import_onnx_bytes(model.SerializeAsString(), "", registry, log);
    return warnings;
  };
  for (const char* domain : {"com.microsoft", "ai.onnx.ml", "ai.onnx.preview", "org.pytorch.aten",
                             "com.microsoft.nchwc"}) {
    ops::Registry registry = test_registry();
    registry.add({.name = "Own",
                  .domain = domain,
                  .versions = {1},
                  .inputs = {{"X", "T"}},
                  .outputs = {{"Y", "T"}}});
    onnx::ModelProto model = relu_model();
    add_node(*model.mutable_graph(), "Own", {"y"}, {"z"}).set_domain(domain);
    add_node(*model.mutable_graph(), "Own", {"z"}, {"a"}).set_domain(domain);
    EXPECT_THAT(warnings_of(model, registry),
                ElementsAre(testing::HasSubstr("'" + std::string(domain) + "'")));
    // As if it were imported.
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(1);
    EXPECT_THAT(warnings_of(model, registry), testing::IsEmpty());
  }
  onnx::ModelProto model = relu_model();
  model.mutable_opset_import(0)->set_domain("com.microsoft");
  model.mutable_opset_import(0)->set_version(1);
  EXPECT_THAT(warnings_of(model, test_registry()), ElementsAre(testing::HasSubstr("'ai.onnx'")));
}

TEST(Import, NestedGraphsCaptureWhatExists) {
  const auto load = [](const onnx::ModelProto& model) {
    import_onnx_bytes(model.SerializeAsString(), "", ops::make_registry(), Log());
  };
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  set_type(*graph.add_input(), "c", {}, onnx::TensorProto::BOOL);
  add_input(graph, "x");
  onnx::NodeProto& node = add_node(graph, "If", {"c"}, {"y"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    add_node(*attribute.mutable_g(), "Softmax", {"x"}, {"s"});
    add_output(*attribute.mutable_g(), "s");
  }
  load(model);
  node.mutable_attribute(1)->mutable_g()->mutable_node(0)->set_input(0, "nothing");
  expect_error([&] { load(model); }, ErrorKind::InvalidModel, {"else_branch", "'nothing'"});
}

}  // namespace
}  // namespace tessera::onnx_import
