// One row for each way in which a model can be invalid.
#include "import/onnx/import.h"
#include "import/onnx/test_models.h"
#include "import/onnx/wire/wire_scan.h"

namespace tessera::onnx_import {
namespace {

using onnx::GraphProto;
using onnx::ModelProto;

constexpr ErrorKind kInvalidModel = ErrorKind::InvalidModel;
constexpr ErrorKind kUnsupportedModel = ErrorKind::Unsupported;

struct InvalidCase {
  const char* what;
  void (*spoil)(ModelProto& model, GraphProto& graph);  // changes relu_model()
  ErrorKind kind;
  std::vector<std::string> parts;  // substrings of the error message
};

const InvalidCase kCases[] = {
    {"no graph", [](auto& m, auto&) { m.clear_graph(); }, kInvalidModel, {"expected a graph"}},
    {"no IR version",
     [](auto& m, auto&) { m.clear_ir_version(); },
     kInvalidModel,
     {"no IR version"}},
    {"IR version 0", [](auto& m, auto&) { m.set_ir_version(0); }, kInvalidModel, {"none above 0"}},
    {"new IR", [](auto& m, auto&) { m.set_ir_version(99); }, kUnsupportedModel, {"found 99"}},
    {"no opset, though operator sets existed",
     [](auto& m, auto&) {
       m.set_ir_version(3);
       m.clear_opset_import();
     },
     kInvalidModel,
     {"opset_import"}},
    {"old opset",
     [](auto& m, auto&) { m.mutable_opset_import(0)->set_version(0); },
     kUnsupportedModel,
     {"operator set from 1 to 28, found 0"}},
    {"new opset",
     [](auto& m, auto&) { m.mutable_opset_import(0)->set_version(29); },
     kUnsupportedModel,
     {"found 29"}},
    {"two opsets",
     [](auto& m, auto&) { m.add_opset_import()->set_version(12); },
     kInvalidModel,
     {"'ai.onnx'", "version 13", "version 12"}},
    {"unknown op",
     [](auto&, auto& g) { g.mutable_node(0)->set_op_type("Rleu"); },
     kUnsupportedModel,
     {"node 'relu' (Rleu)", "'ai.onnx'", "version 13", "did you mean 'Relu'"}},
    {"unknown domain",
     [](auto& m, auto& g) {
       g.mutable_node(0)->set_domain("com.example");
       m.add_opset_import()->set_domain("com.example");
       m.mutable_opset_import(1)->set_version(3);
     },
     kUnsupportedModel,
     {"node 'relu' (Relu)", "version 3 of domain 'com.example'"}},
    {"domain not imported",
     [](auto&, auto& g) { g.mutable_node(0)->set_domain("com.example"); },
     kInvalidModel,
     {"node 'relu'", "'com.example'"}},
    {"op too young",
     [](auto&, auto& g) { g.mutable_node(0)->set_op_type("Gelu"); },
     kUnsupportedModel,
     {"exists since version 20", "imports version 13"}},
    {"op retired",
     [](auto&, auto& g) { g.mutable_node(0)->set_op_type("Upsample"); },
     kUnsupportedModel,
     {"retired after version 9", "imports version 13"}},
    {"too many inputs",
     [](auto&, auto& g) { g.mutable_node(0)->add_input("x"); },
     kInvalidModel,
     {"node 'relu'", "at most 1 input"}},
    {"input left out",
     [](auto&, auto& g) { g.mutable_node(0)->set_input(0, ""); },
     kInvalidModel,
     {"node 'relu'", "input 'X'"}},
    {"input that does not exist",
     [](auto&, auto& g) { g.mutable_node(0)->set_input(0, "q"); },
     kInvalidModel,
     {"node 'relu' (Relu), input 'X'", "'q'", "is no input, constant or output"}},
    {"output nobody makes",
     [](auto&, auto& g) { g.mutable_output(0)->set_name("q"); },
     kInvalidModel,
     {"graph output 'q'"}},
    {"cycle",
     [](auto&, auto& g) {
       g.mutable_node(0)->set_input(0, "z");
       add_node(g, "Relu", {"y"}, {"z"}, "back");
     },
     kInvalidModel,
     {"cycles", "'relu' (Relu) -> ", "'back' (Relu) -> "}},
    {"made twice by nodes",
     [](auto&, auto& g) { add_node(g, "Relu", {"x"}, {"y"}, "two"); },
     kInvalidModel,
     {"value 'y'", "made twice", "node 'relu'", "node 'two'"}},
    {"one node, twice",
     [](auto&, auto& g) { add_node(g, "Clip", {"x"}, {"z", "z"}, "two"); },
     kInvalidModel,
     {"value 'z'", "made twice"}},
    {"node makes an input",
     [](auto&, auto& g) { add_node(g, "Relu", {"x"}, {"x"}, "two"); },
     kInvalidModel,
     {"value 'x'", "a graph input", "node 'two'"}},
    {"two inputs", [](auto&, auto& g) { add_input(g, "x"); }, kInvalidModel, {"value 'x'"}},
    {"two initializers",
     [](auto&, auto& g) {
       add_weight(g, "w", {1});
       add_weight(g, "w", {1});
       add_output(g, "w");
     },
     kInvalidModel,
     {"value 'w'", "an initializer and by an initializer"}},
    {"nameless input", [](auto&, auto& g) { add_input(g, ""); }, kInvalidModel, {"has no name"}},
    {"nameless initializer",
     [](auto&, auto& g) { add_weight(g, "", {1}); },
     kInvalidModel,
     {"has no name"}},
    {"untyped input",
     [](auto&, auto& g) { g.mutable_input(0)->clear_type(); },
     kInvalidModel,
     {"graph input 'x'", "element type"}},
    {"float6 input",
     [](auto&, auto& g) {
       g.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(27);
     },
     kUnsupportedModel,
     {"graph input 'x'", "float6e2m3"}},
    {"initializer against its input",
     [](auto&, auto& g) {
       add_input(g, "w", {3});
       add_weight(g, "w", {2});
     },
     kInvalidModel,
     {"graph input 'w'", "float32 3", "float32 2"}},
    {"initializer against its element type",
     [](auto&, auto& g) {
       set_type(*g.add_output(), "w", {2}, onnx::TensorProto::INT64);
       add_weight(g, "w", {2});
     },
     kInvalidModel,
     {"initializer 'w'", "int64 2", "float32 2"}},
    {"strings in a field of numbers",
     [](auto&, auto& g) {
       add_weight(g, "w", {1}).set_data_type(8);
       add_output(g, "w");
     },
     kInvalidModel,
     {"initializer 'w'", "expected strings in string_data"}},
    {"sparse initializer",
     [](auto&, auto& g) {
       g.add_sparse_initializer()->mutable_values()->set_name("s");
       add_output(g, "s");
     },
     kInvalidModel,
     {"sparse initializer 's', values", "expected a data type, found none"}},
    {"unknown attribute",
     [](auto&, auto& g) {
       auto& a = *g.mutable_node(0)->add_attribute();
       a.set_name("beta");
       a.set_i(1);
     },
     kInvalidModel,
     {"node 'relu' (Relu), attribute 'beta'"}},
    {"attribute twice",
     [](auto&, auto& g) {
       for (int count = 0; count < 2; ++count) {
         auto& a = *g.mutable_node(0)->add_attribute();
         a.set_name("alpha");
         a.set_i(1);
       }
     },
     kInvalidModel,
     {"attribute 'alpha'", "twice"}},
    {"attribute without value",
     [](auto&, auto& g) { g.mutable_node(0)->add_attribute()->set_name("alpha"); },
     kInvalidModel,
     {"attribute 'alpha'", "expected a value"}},
    {"graph where none belongs",
     [](auto&, auto& g) {
       auto& a = *g.mutable_node(0)->add_attribute();
       a.set_name("body");
       a.mutable_g();
     },
     kInvalidModel,
     {"node 'relu' (Relu), attribute 'body'", "no nested graph"}},
    {"sparse attribute",
     [](auto&, auto& g) {
       auto& a = *g.mutable_node(0)->add_attribute();
       a.set_name("value");
       a.mutable_sparse_tensor();
     },
     kUnsupportedModel,
     {"attribute 'value'", "sparse"}},
    {"If without branches",
     [](auto&, auto& g) { add_node(g, "If", {"x"}, {"z"}, "if"); },
     kInvalidModel,
     {"node 'if'", "requires 2 nested graphs"}},
};

TEST(ImportErrors, EachIsNamed) {
  for (const InvalidCase& row : kCases) {
    SCOPED_TRACE(row.what);
    ModelProto model = relu_model();
    row.spoil(model, *model.mutable_graph());
    if (model.graph().ByteSizeLong() == 0) model.clear_graph();
    expect_error([&] { import(model); }, row.kind, row.parts);
  }
}

// An If in an If in an If ...: `count` nested graphs including the model's own.
ModelProto deep_model(int count) {
  ModelProto model = make_model();
  set_type(*model.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
  GraphProto* graph = model.mutable_graph();
  for (int depth = 1; depth < count; ++depth) {
    const std::string output = "y" + std::to_string(depth);
    onnx::NodeProto& node = add_node(*graph, "If", {"c"}, {output});
    add_output(*graph, output);
    GraphProto* inner = nullptr;
    for (const char* name : {"else_branch", "then_branch"}) {
      auto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::GRAPH);
      inner = attribute.mutable_g();
    }
    graph = inner;
  }
  return model;
}

TEST(ImportErrors, GraphsNestTooDeep) {
  EXPECT_NO_THROW(import(deep_model(kMaxNestedGraphs)));
  expect_error([] { import(deep_model(kMaxNestedGraphs + 1)); }, kInvalidModel,
               {"nested graphs", "at most 128"});
  expect_error([] { import(deep_model(300)); }, kInvalidModel, {"nested graphs", "at most 128"});
}

TEST(ImportErrors, ShadowedValueNamesBothMakers) {
  ModelProto model = deep_model(2);
  add_input(*model.mutable_graph(), "x");
  auto* inner = model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  add_node(*inner, "Relu", {"c"}, {"x"}, "inner");
  expect_error([&] { import(model); }, kInvalidModel,
               {"value 'x'", "in a graph around it", "a graph input", "node 'inner'"});
}

TEST(ImportErrors, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  for (const auto& file : {folder.path(), folder.path() / "none.onnx"}) {
    expect_error([&] { import_onnx(file, test_registry(), Log()); }, ErrorKind::InvalidArgument,
                 {file.string()});
  }
  expect_error([] { import_onnx("/dev/zero", test_registry(), Log()); }, ErrorKind::InvalidArgument,
               {"expected a regular file"});
}

TEST(ImportErrors, OtherShapeOfAnInnerConstantIsAWarning) {
  ModelProto model = relu_model();
  set_type(*model.mutable_graph()->add_output(), "w", {3});
  add_weight(*model.mutable_graph(), "w", {2});
  std::vector<std::string> warnings;
  const Log log([&](const std::string& message) { warnings.push_back(message); });
  import_onnx_bytes(model.SerializeAsString(), "", test_registry(), log);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], testing::HasSubstr("initializer 'w'"));
}

}  // namespace
}  // namespace tessera::onnx_import
