#include "import/onnx/names/functions.h"

#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

onnx::FunctionProto& add_function(onnx::ModelProto& model, const std::string& name,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name(name);
  for (const std::string& input : inputs) function.add_input(input);
  for (const std::string& output : outputs) function.add_output(output);
  function.add_opset_import()->set_version(13);
  return function;
}

onnx::NodeProto& add_call(auto& parent, const std::string& name,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& own = "") {
  onnx::NodeProto& node = add_node(parent, name, inputs, outputs, own);
  node.set_domain("local");
  return node;
}

// x -> f -> y, where f is Elu(Relu(a)) and has an intermediate value called 'x' too.
onnx::ModelProto call_model() {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_call(*model.mutable_graph(), "f", {"x"}, {"y"}, "call");
  add_output(*model.mutable_graph(), "y");
  onnx::FunctionProto& function = add_function(model, "f", {"a"}, {"b"});
  add_node(function, "Relu", {"a"}, {"x"}, "first");
  add_node(function, "Elu", {"x"}, {"b"});
  return model;
}

void refer(onnx::NodeProto& node, const std::string& name, const std::string& parameter) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_ref_attr_name(parameter);
  attribute.set_type(onnx::AttributeProto::FLOAT);
}

void give(onnx::AttributeProto& attribute, const std::string& name, float number) {
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(number);
}

TEST(Functions, CallIsReplacedByItsBody) {
  const ImportedModel model = import(call_model());
  EXPECT_THAT(node_names(model.graph), ElementsAre("call/first", "y"));
  EXPECT_EQ(model.graph[model.graph.nodes[0].inputs[0]].name, "x");
  EXPECT_EQ(model.graph[model.graph.nodes[0].outputs[0]].name, "call/x");
  EXPECT_EQ(model.graph[model.graph.nodes[1].outputs[0]].name, "y");
}

TEST(Functions, NotesOfTheCallAreThoseOfItsNodesUnlessTheySayElse) {
  const auto note = [](onnx::NodeProto& node, const char* key, const char* text) {
    onnx::StringStringEntryProto& entry = *node.add_metadata_props();
    entry.set_key(key);
    entry.set_value(text);
  };
  onnx::ModelProto model = call_model();
  note(*model.mutable_graph()->mutable_node(0), "layer", "outer");
  note(*model.mutable_graph()->mutable_node(0), "block", "3");
  note(*model.mutable_functions(0)->mutable_node(1), "layer", "inner");
  const Graph graph = import(model).graph;
  EXPECT_THAT(graph.nodes[0].metadata,
              ElementsAre(std::pair("block", "3"), std::pair("layer", "outer")));
  EXPECT_THAT(graph.nodes[1].metadata,
              ElementsAre(std::pair("block", "3"), std::pair("layer", "inner")));
}

TEST(Functions, TwoCallsHaveNamesOfTheirOwn) {
  onnx::ModelProto model = call_model();
  add_call(*model.mutable_graph(), "f", {"y"}, {"z"}, "call");
  EXPECT_THAT(node_names(import(model).graph), ElementsAre("call/first", "y", "call#2/first", "z"));
}

TEST(Functions, NamesInsideDoNotMeetThoseOfTheModel) {
  onnx::ModelProto model = call_model();
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"call/x"});
  EXPECT_THAT(node_names(import(model).graph), ElementsAre("call#2/first", "y", "call/x"));
}

TEST(Functions, AttributesComeFromTheCallElseFromTheDefault) {
  onnx::ModelProto model = call_model();
  onnx::FunctionProto& function = *model.mutable_functions(0);
  give(*function.add_attribute_proto(), "slope", 0.25F);
  refer(*function.mutable_node(1), "alpha", "slope");
  EXPECT_EQ(import(model).graph.nodes[1].attributes.get_float("alpha"), 0.25F);
  give(*model.mutable_graph()->mutable_node(0)->add_attribute(), "slope", 3);
  EXPECT_EQ(import(model).graph.nodes[1].attributes.get_float("alpha"), 3);
}

TEST(Functions, AttributeThatNobodyGivesIsLeftOut) {
  onnx::ModelProto model = call_model();
  model.mutable_functions(0)->add_attribute("slope");
  refer(*model.mutable_functions(0)->mutable_node(1), "alpha", "slope");
  EXPECT_EQ(import(model).graph.nodes[1].attributes.get_float("alpha"), 1) << "Elu's own default";
}

TEST(Functions, CallEachOtherWithAttributesPassedOn) {
  onnx::ModelProto model = call_model();
  onnx::FunctionProto& inner = *model.mutable_functions(0);
  inner.add_attribute("slope");
  refer(*inner.mutable_node(1), "alpha", "slope");
  onnx::FunctionProto& outer = add_function(model, "g", {"p"}, {"q"});
  outer.add_attribute("steep");
  refer(add_call(outer, "f", {"p"}, {"q"}, "inner"), "slope", "steep");
  onnx::NodeProto& call = *model.mutable_graph()->mutable_node(0);
  call.set_op_type("g");
  give(*call.add_attribute(), "steep", 5);
  const ImportedModel imported = import(model);
  EXPECT_THAT(node_names(imported.graph), ElementsAre("call/inner/first", "y"));
  EXPECT_EQ(imported.graph.nodes[1].attributes.get_float("alpha"), 5);
}

TEST(Functions, HaveOperatorSetsOfTheirOwn) {
  onnx::ModelProto model = call_model();
  model.mutable_functions(0)->mutable_opset_import(0)->set_version(12);
  add_node(*model.mutable_graph(), "Relu", {"y"}, {"z"});
  const ImportedModel imported = import(model);
  EXPECT_EQ(imported.graph.nodes[0].version, 7);
  EXPECT_EQ(imported.graph.nodes[2].version, 13);
}

TEST(Functions, WhatTheyDoNotImportIsThatOfTheModel) {
  onnx::ModelProto model = call_model();
  model.mutable_opset_import(0)->set_version(12);
  model.mutable_functions(0)->clear_opset_import();
  EXPECT_EQ(import(model).graph.nodes[0].version, 7);
}

TEST(Functions, OptionalInputsAndUnwantedOutputs) {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_call(*model.mutable_graph(), "f", {"x"}, {"", "y"}, "call");
  onnx::FunctionProto& function = add_function(model, "f", {"a", "low"}, {"b", "c"});
  add_node(function, "Clip", {"a", "low"}, {"b"});
  add_node(function, "Relu", {"a"}, {"c"});
  const ImportedModel imported = import(model);
  EXPECT_EQ(imported.graph.nodes[0].inputs.size(), 1U);
  EXPECT_EQ(imported.graph[imported.graph.nodes[0].outputs[0]].name, "call/b");
}

TEST(Functions, InputMayBeAnOutput) {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_call(*model.mutable_graph(), "f", {"x"}, {"y"});
  add_output(*model.mutable_graph(), "y");
  add_function(model, "f", {"a"}, {"a"});
  const ImportedModel imported = import(model);
  ASSERT_EQ(imported.graph.nodes.size(), 1U);
  EXPECT_EQ(imported.graph.nodes[0].op, "Identity");
}

TEST(Functions, RecursionIsRefused) {
  onnx::ModelProto model = call_model();
  onnx::FunctionProto& other = add_function(model, "g", {"p"}, {"q"});
  add_call(other, "f", {"p"}, {"q"});
  onnx::FunctionProto& function = *model.mutable_functions(0);
  add_call(function, "g", {"a"}, {"again"});
  expect_error([&] { import(model); }, ErrorKind::InvalidModel,
               {"a function calls itself: 'f' -> 'g' -> 'f'"});
}

TEST(Functions, ExponentialCallsAreRefused) {
  onnx::ModelProto model = call_model();
  for (int level = 0; level < 40; ++level) {
    const std::string below = level == 0 ? "f" : "f" + std::to_string(level - 1);
    auto& function = add_function(model, "f" + std::to_string(level), {"a"}, {"b"});
    add_call(function, below, {"a"}, {"m"});
    add_call(function, below, {"m"}, {"b"});
  }
  model.mutable_graph()->mutable_node(0)->set_op_type("f39");
  expect_error([&] { import(model); }, ErrorKind::Unsupported, {"too large"});
}

TEST(Functions, CallsThatDoNotFitAreRefused) {
  struct Case {
    const char* what;
    void (*spoil)(onnx::ModelProto& model);
    const char* part;
  };
  const Case cases[] = {
      {"inputs", [](auto& m) { m.mutable_graph()->mutable_node(0)->add_input("x"); }, "1 inputs"},
      {"outputs", [](auto& m) { m.mutable_graph()->mutable_node(0)->add_output("z"); },
       "1 outputs"},
      {"attribute",
       [](auto& m) { give(*m.mutable_graph()->mutable_node(0)->add_attribute(), "k", 1); },
       "attribute 'k'"},
      {"result", [](auto& m) { m.mutable_functions(0)->set_output(0, "nothing"); },
       "no node makes its output 'nothing'"},
      {"parameter", [](auto& m) { refer(*m.mutable_functions(0)->mutable_node(1), "alpha", "k"); },
       "has no attribute 'k'"},
      {"twice", [](auto& m) { *m.add_functions() = m.functions(0); }, "two of this name"},
      {"outside", [](auto& m) { refer(*m.mutable_graph()->mutable_node(0), "alpha", "k"); },
       "attribute 'alpha'"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.what);
    onnx::ModelProto model = call_model();
    row.spoil(model);
    expect_error([&] { import(model); }, ErrorKind::InvalidModel, {row.part});
  }
}

}  // namespace
}  // namespace tessera::onnx_import
