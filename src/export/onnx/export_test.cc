#include "export/onnx/export.h"

#include <map>
#include <utility>

#include "base/errors/error_test.h"
#include "base/tensor/tensors_test.h"
#include "graph/extract_group.h"
#include "import/onnx/import.h"
#include "infer/infer.h"
#include "ops/control_flow/bodies.h"
#include "ops/evaluate.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

class ExportOnnx : public testing::Test {
 protected:
  ExportOnnx() {
    for (const ops::Op* op : all_ops().all()) registry_.add(*op);
    registry_.add({.name = "Everything",
                   .domain = "org.example",
                   .versions = {3},
                   .inputs = {{"X", "T", ops::Arity::Optional}, {"Z", "T", ops::Arity::Optional}},
                   .outputs = {{"Y", "T"},
                               {"U", "T", ops::Arity::Optional},
                               {"V", "T", ops::Arity::Optional}},
                   .attributes = {{"int", AttributeKind::Int, std::nullopt},
                                  {"float", AttributeKind::Float, std::nullopt},
                                  {"string", AttributeKind::String, std::nullopt},
                                  {"ints", AttributeKind::Ints, std::nullopt},
                                  {"floats", AttributeKind::Floats, std::nullopt},
                                  {"strings", AttributeKind::Strings, std::nullopt},
                                  {"tensor", AttributeKind::Tensor, std::nullopt},
                                  {"tensors", AttributeKind::Tensors, std::nullopt},
                                  {"type", AttributeKind::Type, std::nullopt}}});
  }

  GraphBuilder builder(int opset = 17) const { return GraphBuilder(registry_, opset); }

  // Writes and reads again; compares the result with `graph`.
  ImportedModel round_trip(const Graph& graph) const {
    ImportedModel read = read_again(graph);
    EXPECT_EQ(onnx_export::explain_difference(graph, read.graph), "");
    return read;
  }
  ImportedModel read_again(const Graph& graph) const {
    const std::string bytes = export_onnx(graph, registry_);
    EXPECT_EQ(bytes, export_onnx(graph, registry_)) << "equal graphs give equal bytes";
    return import_onnx_bytes(bytes, "/nonexistent", registry_, Log());
  }

  // The tensor of each name, computed node by node.
  std::map<std::string, Tensor> run(const Graph& graph, std::map<std::string, Tensor> values) {
    for (const Value& value : graph.values) {
      if (value.is_constant()) values[value.name] = value.constant;
    }
    for (const Node& node : graph.nodes) {
      std::vector<Tensor> inputs;
      for (const ValueId id : node.inputs) {
        inputs.push_back(id.is_none() ? Tensor() : values.at(graph[id].name));
      }
      const std::vector<Tensor> outputs = ops::evaluate(registry_.of(node), node, inputs, pool_);
      for (size_t index = 0; index < outputs.size(); ++index) {
        if (!node.outputs[index].is_none()) {
          values[graph[node.outputs[index]].name] = outputs[index];
        }
      }
    }
    return values;
  }

  // x -> Conv (w, bias) -> Relu -> (Clip; Add with the Relu's) -> y
  Graph network() const {
    GraphBuilder made = builder();
    made.input("x", float_type(Shape{Dim::symbol("batch"), 1, 3, 3}))
        .constant("w", floats({2, 1, 2, 2}, {1, -2, 3, -4, 5, -6, 7, -8}))
        .constant("bias", floats({2}, {0.5F, -0.5F}))
        .constant("six", floats({}, {6}))
        .node("conv", "Conv", {"x", "w", "bias"}, {"c"})
        .node("relu", "Relu", {"c"}, {"r"})
        .node("clip", "Clip", {"r", "", "six"}, {"k"})
        .node("add", "Add", {"k", "r"}, {"y"})
        .output("y");
    return infer_types(made.graph(), registry_, Log());
  }

  ops::Registry registry_;
  ThreadPool pool_{1};
};

TEST_F(ExportOnnx, EverythingComesBack) {
  Graph graph = network();
  graph.name = "net";
  graph.nodes[0].metadata = {{"layer", "first"}, {"empty", ""}};
  const ImportedModel read = round_trip(graph);
  EXPECT_EQ(read.ir_version, 10) << "the first version with notes on nodes";
  EXPECT_EQ(read.producer, "tessera");
  EXPECT_EQ(read.opsets.at(""), 14) << "where Relu has the version of set 17";
  EXPECT_EQ(read.graph.name, "net");
  EXPECT_EQ(text(value_of(read.graph, "c").type), "float32 batchx2x2x2");
}

TEST_F(ExportOnnx, NotesAskForANewerFormatOnlyWhereThereAreSome) {
  EXPECT_EQ(round_trip(network()).ir_version, 8);
}

TEST_F(ExportOnnx, EveryKindOfAttribute) {
  Graph graph;
  graph.inputs = {add_value(graph, {.name = "x", .type = float_type(Shape{1})})};
  const ValueId y = add_value(graph, {.name = "y"});
  graph.outputs = {y};
  Node node;
  node.name = "n";
  node.op = "Everything";
  node.domain = "org.example";
  node.version = 3;
  node.inputs = graph.inputs;
  node.outputs = {y};
  Attributes& attributes = node.attributes;
  attributes.set("int", int64_t{-7});
  attributes.set("float", 0.1F);
  attributes.set("string", std::string("a\0b", 3));
  attributes.set("ints", std::vector<int64_t>{});
  attributes.set("floats", std::vector<float>{1, -0.0F});
  attributes.set("strings", std::vector<std::string>{"", "x"});
  attributes.set("tensor", floats({2, 0}, {}));
  attributes.set("tensors", std::vector<Tensor>{floats({}, {3}), floats({1}, {4})});
  attributes.set("type", Type::sequence(float_type(Shape{Dim::symbol("N"), 2})));
  graph.nodes.push_back(node);
  const ImportedModel read = round_trip(graph);
  EXPECT_EQ(read.opsets.at("org.example"), 3);
  EXPECT_EQ(read.graph.nodes[0].attributes.get_string("string").size(), 3U);
}

TEST_F(ExportOnnx, EveryElementTypeAndTypesThatAreNoTensors) {
  Graph graph;
  for (auto type = DataType::Bool; type <= DataType::UInt2;
       type = static_cast<DataType>(static_cast<int>(type) + 1)) {
    if (type == DataType::String || type == DataType::Sequence) continue;
    Tensor tensor(type, {2});
    std::fill_n(static_cast<char*>(tensor.mutable_data()), tensor.bytes(), char{1});
    const std::string name(tessera::name(type));
    graph.outputs.push_back(
        add_value(graph, {.name = name, .type = Type::tensor(type, Shape{2}), .constant = tensor}));
  }
  const auto input = [&](const std::string& name, Type type) {
    graph.inputs.push_back(add_value(graph, {.name = name, .type = std::move(type)}));
  };
  input("list", Type::sequence(Type::tensor(DataType::Int64)));
  input("maybe", Type::optional(Type::sequence(float_type(Shape{}))));
  input("table", Type::map(DataType::String, float_type()));
  input("scalar", float_type(Shape{}));
  input("text", Type::tensor(DataType::String, Shape{0}));
  round_trip(graph);
}

TEST_F(ExportOnnx, DimensionsMayShareANameOrHaveNone) {
  for (const char* dim : {"N", "N'2", "(N*2)", "(N'2*2)", "x[0]", "?"}) {
    GraphBuilder made = builder();
    made.input("x", float_type(Shape{Dim::symbol("N"), Dim::symbol(dim)}))
        .input("z", float_type(Shape{Dim::symbol(dim), 3}))
        .node("n", "Relu", {"x"}, {"y"})
        .output("y");
    round_trip(infer_types(made.graph(), registry_, Log()));
  }
}

TEST_F(ExportOnnx, WhatIsLeftOutStaysOut) {
  Graph graph;
  graph.inputs = {add_value(graph, {.name = "x", .type = float_type(Shape{1})})};
  graph.outputs = {add_value(graph, {.name = "v"})};
  Node node;
  node.name = "n";
  node.op = "Everything";
  node.domain = "org.example";
  node.version = 3;
  node.inputs = {ValueId{}, graph.inputs[0]};
  node.outputs = {add_value(graph, {.name = "y"}), ValueId{}, graph.outputs[0]};
  graph.nodes = {node};
  round_trip(graph);
  // Trailing omitted inputs do not appear in a file.
  graph.nodes[0].inputs = {graph.inputs[0], ValueId{}};
  EXPECT_EQ(read_again(graph).graph.nodes[0].inputs.size(), 1U);
}

TEST_F(ExportOnnx, ConstantsThatNobodyReadsAreNotWritten) {
  GraphBuilder made = builder();
  made.input("x", float_type(Shape{1}))
      .constant("unused", floats({1000}, std::vector<float>(1000, 1)))
      .node("n", "Relu", {"x"}, {"y"})
      .output("y");
  EXPECT_LT(export_onnx(made.graph(), registry_).size(), 500U);
}

TEST_F(ExportOnnx, OutputsThatAreOneValueBecomeTwo) {
  GraphBuilder made = builder();
  made.input("x", float_type(Shape{1})).node("n", "Relu", {"x"}, {"y"});
  made.node("y#2", "Neg", {"y"}, {"z"}).output("y").output("y").output("x").output("z");
  const Graph graph = read_again(made.graph()).graph;
  EXPECT_THAT(node_names(graph), ElementsAre("n", "y#2", "y#2#2"));
  EXPECT_EQ(graph.nodes[2].op, "Identity");
  std::vector<std::string> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(graph[id].name);
  EXPECT_THAT(outputs, ElementsAre("y", "y#2", "x", "z"));
}

// An If with two branches: one computes with its captures and shadows outer names, the other
// returns a capture.
Graph with_branches(const GraphBuilder& around, const ops::Registry& registry) {
  Graph graph = around.graph();
  GraphBuilder then_graph(registry, 17);
  then_graph.capture(find_value(graph, "r"), "inside")
      .node("x", "Neg", {"inside"})
      .node("y", "Neg", {"x"})
      .output("y");
  GraphBuilder else_graph(registry, 17);
  else_graph.capture(find_value(graph, "r"), "r").output("r");
  std::vector<Body>& bodies = graph.nodes[1].bodies;
  bodies.push_back({"then_branch", then_graph.graph()});
  bodies.push_back({"else_branch", else_graph.graph()});
  return graph;
}

TEST_F(ExportOnnx, NestedGraphsReadWhatTheyCaptureByName) {
  GraphBuilder made = builder();
  made.input("x", float_type(Shape{1}))
      .input("c", Type::tensor(DataType::Bool, Shape{}))
      .node("relu", "Relu", {"x"}, {"r"})
      .node("if", "If", {"c"}, {"y"})
      .output("y");
  const std::string declared = ops::declared_type_name("then_branch", 0);
  Graph written = with_branches(made, registry_);
  written.nodes[1].attributes.set(declared, float_type(Shape{1, 4}));
  const Graph graph = read_again(written).graph;
  EXPECT_EQ(explain_illegal(graph), "");
  ASSERT_EQ(graph.nodes.size(), 2U);
  const Graph& then_graph = graph.nodes[1].bodies[0].graph;
  ASSERT_EQ(then_graph.captures.size(), 1U);
  EXPECT_EQ(graph[then_graph.captures[0].outer].name, "r");
  EXPECT_EQ(then_graph[then_graph.nodes[0].outputs[0]].name, "x#2");
  EXPECT_EQ(then_graph[then_graph.outputs[0]].name, "y#2");
  const Graph& else_graph = graph.nodes[1].bodies[1].graph;
  EXPECT_THAT(node_names(else_graph), ElementsAre("r#2")) << "an Identity, as it makes nothing";
  ASSERT_TRUE(graph.nodes[1].attributes.has(declared));
  EXPECT_EQ(text(*graph.nodes[1].attributes.find_type(declared)), "float32 1x4");
}

TEST_F(ExportOnnx, AGroupComputesWhatItDoesInTheWhole) {
  const Graph graph = network();
  std::vector<float> values;
  for (int index = 0; index < 9; ++index) values.push_back(static_cast<float>(index % 5) - 1.5F);
  const std::map<std::string, Tensor> whole = run(graph, {{"x", floats({1, 1, 3, 3}, values)}});
  const std::vector<std::vector<NodeId>> groups = {{{0}},      {{0}, {1}}, {{1}, {2}},
                                                   {{1}, {3}}, {{2}, {3}}, {{0}, {1}, {2}, {3}}};
  for (const std::vector<NodeId>& nodes : groups) {
    const std::string bytes = export_group(graph, nodes, registry_);
    const Graph group = import_onnx_bytes(bytes, "/nonexistent", registry_, Log()).graph;
    EXPECT_EQ(onnx_export::explain_difference(extract_group(graph, nodes), group), "");
    EXPECT_EQ(group.nodes.size(), nodes.size());
    std::map<std::string, Tensor> inputs;
    for (const ValueId id : group.inputs) inputs[group[id].name] = whole.at(group[id].name);
    const std::map<std::string, Tensor> alone = run(group, inputs);
    ASSERT_FALSE(group.outputs.empty());
    for (const ValueId id : group.outputs) {
      const Tensor& expected = whole.at(group[id].name);
      EXPECT_EQ(alone.at(group[id].name).dims(), expected.dims());
      EXPECT_THAT(alone.at(group[id].name).as<float>(),
                  testing::ElementsAreArray(expected.as<float>()));
    }
  }
}

TEST_F(ExportOnnx, AnOpenGroupHasItsConstantsAsFurtherInputs) {
  Graph graph = network();
  const ValueId weight = find_value(graph, "w");
  const ValueId bias = find_value(graph, "bias");
  const std::vector<NodeId> nodes = {{0}, {1}};
  // The elements may have been released.
  graph[weight].constant = graph[weight].constant.without_elements();
  const std::vector<ValueId> constants = {bias, weight};
  const std::string bytes = export_open_group(graph, nodes, constants, registry_);
  const Graph group = import_onnx_bytes(bytes, "/nonexistent", registry_, Log()).graph;
  std::vector<std::string> inputs;
  for (const ValueId id : group.inputs) inputs.push_back(group[id].name);
  EXPECT_THAT(inputs, ElementsAre("x", "bias", "w"));
  EXPECT_FALSE(group[find_value(group, "w")].is_constant());
  EXPECT_EQ(text(group[find_value(group, "w")].type), "float32 2x1x2x2");
  EXPECT_EQ(error_of([&] {
              export_open_group(graph, nodes, std::vector{find_value(graph, "six")}, registry_);
            }),
            "InvalidArgument: group: expected constants that its nodes read, found value 'six'");
}

TEST_F(ExportOnnx, RefusesWhatAFileCannotHold) {
  Graph graph;
  graph.inputs = {add_value(graph, {.name = "x"})};
  graph.outputs = graph.inputs;
  EXPECT_EQ(error_of([&] { export_onnx(graph, registry_); }),
            "Unsupported: graph input 'x': a file has to tell its element type, which is not "
            "known; found unknown");
  graph[graph.inputs[0]].type = Type::tensor(DataType::Undefined, Shape{2});
  EXPECT_THAT(error_of([&] { export_onnx(graph, registry_); }), HasSubstr("its element type"));

  // 3 GiB without storage: they must be refused before they are read.
  const int64_t elements = int64_t{3} << 28;
  Value large = {.name = "large", .type = float_type(Shape{elements})};
  large.constant = Tensor(DataType::Float32, {elements}, nullptr, &elements);
  graph.outputs = {add_value(graph, large)};
  EXPECT_EQ(error_of([&] { export_onnx(graph, registry_); }),
            "Unsupported: export: expected at most 2 GiB (2147483647 bytes), protobuf's limit, "
            "found 3221225472");
}

TEST_F(ExportOnnx, AGroupOfNothingIsRefused) {
  EXPECT_THAT(error_of([&] { export_group(network(), {}, registry_); }),
              HasSubstr("InvalidArgument: group"));
}

// --- The comparison itself ----------------------------------------------------------------------

TEST_F(ExportOnnx, DifferencesAreFound) {
  const Graph graph = network();
  const auto difference = [&](auto change) {
    Graph other = graph;
    change(other);
    return onnx_export::explain_difference(graph, other);
  };
  EXPECT_EQ(difference([](Graph&) {}), "");
  EXPECT_THAT(difference([](Graph& other) { other.nodes.pop_back(); }),
              HasSubstr("4 nodes became 3"));
  EXPECT_THAT(difference([](Graph& other) { other.nodes[1].version = 6; }),
              HasSubstr("node 'relu' (Relu) of version 14 became node 'relu' (Relu) of version 6"));
  EXPECT_THAT(difference([](Graph& other) { other.nodes[2].inputs[1] = other.inputs[0]; }),
              HasSubstr("is left out on one side"));
  EXPECT_THAT(difference([](Graph& other) { other.outputs.clear(); }),
              HasSubstr("outputs: 1 became 0"));
  EXPECT_THAT(difference([](Graph& other) { other.values[0].name = "z"; }),
              HasSubstr("'x' became 'z'"));
  EXPECT_THAT(difference([](Graph& other) { other.values[0].type = float_type(); }),
              HasSubstr("float32 batchx1x3x3 became float32 ?"));
  const auto other_rows = [&](const char* symbol) {
    return difference([&](Graph& other) {
      other.values[0].type = float_type(Shape{Dim::symbol(symbol), 1, 3, 3});
    });
  };
  EXPECT_EQ(other_rows("batch'2"), "");
  EXPECT_THAT(other_rows("rows"), HasSubstr("batchx1x3x3 became float32 rowsx1x3x3"));
  EXPECT_THAT(other_rows("x[0]"), HasSubstr("batchx1x3x3 became"));
  EXPECT_THAT(difference([](Graph& other) {
                other[find_value(other, "bias")].constant = floats({2}, {0.5F, 0.5F});
              }),
              HasSubstr("'bias': the constant is another"));
  EXPECT_THAT(difference([](Graph& other) { other.nodes[0].metadata["a"] = "b"; }),
              HasSubstr("its notes are others"));
  EXPECT_THAT(difference([](Graph& other) { other.nodes[0].attributes.set("group", int64_t{2}); }),
              HasSubstr("attribute 'group' is another"));
  EXPECT_THAT(difference([](Graph& other) { other.nodes[0].bodies.emplace_back(); }),
              HasSubstr("bodies"));
}

Node node(const std::string& op, int version, const std::string& domain = "") {
  Node made;
  made.name = op;
  made.op = op;
  made.version = version;
  made.domain = domain;
  return made;
}

class ChooseOpsets : public testing::Test {
 protected:
  ChooseOpsets() {
    registry_.add({.name = "Old", .versions = {1, 6}});
    registry_.add({.name = "Young", .versions = {16, 21}});
    registry_.add({.name = "Steady", .versions = {1}});
    registry_.add({.name = "Retired", .versions = {7, 9}, .last_version = 9});
  }

  int chosen(std::vector<Node> nodes) const {
    Graph graph;
    graph.nodes = std::move(nodes);
    return choose_opsets(graph, registry_).at("");
  }

  ops::Registry registry_;
};

TEST_F(ChooseOpsets, TakesTheOneNearestToTheUsualOne) {
  EXPECT_EQ(chosen({}), 13);
  EXPECT_EQ(chosen({node("Steady", 1), node("Old", 6)}), 13);
  EXPECT_EQ(chosen({node("Young", 16)}), 16);
  EXPECT_EQ(chosen({node("Young", 21), node("Steady", 1)}), 21);
  EXPECT_EQ(chosen({node("Retired", 9)}), 9);
  EXPECT_EQ(chosen({node("Retired", 7)}), 8);
}

TEST_F(ChooseOpsets, EveryDomainHasItsOwn) {
  Graph graph;
  graph.nodes = {node("Steady", 1), node("Mine", 3, "org.example")};
  const std::map<std::string, int> expected = {{"", 13}, {"org.example", 3}};
  EXPECT_EQ(choose_opsets(graph, registry_), expected);
}

TEST_F(ChooseOpsets, NestedGraphsCount) {
  Graph graph;
  graph.nodes = {node("Steady", 1)};
  graph.nodes[0].bodies.emplace_back().graph.nodes = {node("Young", 21)};
  EXPECT_EQ(choose_opsets(graph, registry_).at(""), 21);
}

TEST_F(ChooseOpsets, NamesTwoThatCannotStandTogether) {
  EXPECT_EQ(error_of([&] { chosen({node("Steady", 1), node("Young", 16), node("Retired", 9)}); }),
            "Unsupported: node 'Young' (Young): an ONNX file has one operator set for each domain, "
            "but none of 'ai.onnx' contains both node 'Young' (Young) of version 16 (in sets from "
            "16 on) and node 'Retired' (Retired) of version 9 (in sets up to 9)");
  Graph graph;
  graph.nodes = {node("Mine", 3, "org.example"), node("Other", 2, "org.example")};
  EXPECT_EQ(choose_opsets(graph, registry_).at("org.example"), 3) << "nothing is known of them";
}

}  // namespace

}  // namespace tessera
