#include "import/onnx/survey.h"

#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

ModelInspection survey(const onnx::ModelProto& model) {
  return survey_onnx_bytes(model.SerializeAsString(), ops::make_registry());
}

// "operator Affine 2: node 'a' (Affine)".
std::vector<std::string> texts(const std::vector<MissingPart>& missing) {
  std::vector<std::string> all;
  for (const MissingPart& part : missing) {
    all.push_back(part.kind + " " + part.name + " " + std::to_string(part.count) + ": " +
                  part.places.front());
  }
  return all;
}

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const char* name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  return attribute;
}

struct SurveyCase {
  const char* what;
  void (*change)(onnx::ModelProto& model, onnx::GraphProto& graph);  // changes relu_model()
  std::vector<std::string> expected;
};

constexpr int kFloat6 = onnx::TensorProto::FLOAT6E2M3;

const SurveyCase kSurveyCases[] = {
    {"nothing", [](auto&, auto&) {}, {}},
    {"operators, the most frequent first",
     [](auto&, auto& graph) {
       add_node(graph, "Rleu", {"x"}, {"r"}, "once");
       add_node(graph, "Affine", {"x"}, {"a"}, "first");
       add_node(graph, "Affine", {"x"}, {"b"}, "second");
     },
     {"operator Affine 2: node 'first' (Affine)", "operator Rleu 1: node 'once' (Rleu)"}},
    {"element types of inputs, initializers, values and outputs",
     [](auto&, auto& graph) {
       set_type(*graph.add_input(), "i", {2}, kFloat6);
       set_type(*graph.add_value_info(), "v", {2}, kFloat6);
       add_weight(graph, "w", {2}).set_data_type(kFloat6);
       add_node(graph, "Relu", {"w"}, {"u"});
       set_type(*graph.add_output(), "o", {2}, onnx::TensorProto::COMPLEX64);
       add_node(graph, "Identity", {"i"}, {"v"});
     },
     {"element_type float6e2m3 3: graph input 'i'", "element_type complex64 1: graph output 'o'"}},
    {"element types in attributes",
     [](auto&, auto& graph) {
       add_attribute(add_node(graph, "Cast", {"x"}, {"a"}, "cast"), "to").set_i(kFloat6);
       onnx::NodeProto& constant = add_node(graph, "Constant", {}, {"b"}, "constant");
       add_attribute(constant, "value").mutable_t()->set_data_type(kFloat6);
     },
     {"element_type float6e2m3 2: node 'cast' (Cast), attribute 'to'"}},
    {"strings",
     [](auto&, auto& graph) {
       set_type(*graph.add_input(), "s", {2}, onnx::TensorProto::STRING);
       onnx::NodeProto& constant = add_node(graph, "Constant", {}, {"b"}, "constant");
       add_attribute(constant, "value_strings").add_strings("a");
       add_node(graph, "Identity", {"s"}, {"t"});
     },
     {}},
    {"values that are no dense tensors",
     [](auto&, auto& graph) {
       onnx::TypeProto& list = *graph.add_input()->mutable_type();
       list.mutable_optional_type()
           ->mutable_elem_type()
           ->mutable_sequence_type()
           ->mutable_elem_type()
           ->mutable_tensor_type()
           ->set_elem_type(1);
       graph.mutable_input(1)->set_name("list");
       add_node(graph, "Identity", {"list"}, {"t"});
       onnx::TypeProto& map = *graph.add_output()->mutable_type();
       map.mutable_map_type()->set_key_type(onnx::TensorProto::STRING);
       map.mutable_map_type()->mutable_value_type()->mutable_sparse_tensor_type()->set_elem_type(1);
     },
     {"value_type sparse tensor 1: graph output ''"}},
    {"nested graphs",
     [](auto&, auto& graph) {
       onnx::NodeProto& node = add_node(graph, "If", {"c"}, {"z"}, "if");
       for (const char* name : {"then_branch", "else_branch"}) {
         onnx::GraphProto& branch = *add_attribute(node, name).mutable_g();
         add_node(branch, "Affine", {"x", "w"}, {"q"}, name);
         add_weight(branch, "w", {1}).set_data_type(kFloat6);
       }
     },
     {"operator Affine 2: node 'if' (If), then_branch, node 'then_branch' (Affine)",
      "element_type float6e2m3 2: node 'if' (If), then_branch, initializer 'w'"}},
    {"functions that are called, once each",
     [](auto& model, auto& graph) {
       for (const char* name : {"f", "g", "unused"}) {
         onnx::FunctionProto& function = *model.add_functions();
         function.set_domain("local");
         function.set_name(name);
         function.add_opset_import()->set_version(18);
         add_node(function, "Affine", {"a"}, {"b"}, "inside");
         add_node(function, "g", {"a"}, {"c"}).set_domain("local");
       }
       add_node(graph, "f", {"x"}, {"p"}).set_domain("local");
       add_node(graph, "f", {"x"}, {"q"}).set_domain("local");
     },
     {"operator Affine 2: function 'f', node 'inside' (Affine)"}},
    {"domains that are not imported",
     [](auto&, auto& graph) {
       add_node(graph, "LongformerAttention", {"x"}, {"p"}, "n").set_domain("com.microsoft");
       add_node(graph, "Own", {"x"}, {"q"}, "o").set_domain("com.example");
     },
     {"operator LongformerAttention 1: node 'n' (LongformerAttention)",
      "operator Own 1: node 'o' (Own)"}},
    {"not what nothing reads or makes",
     [](auto&, auto& graph) {
       auto& sequence = *graph.add_input();
       sequence.set_name("unread");
       sequence.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
       auto& lost = *graph.add_value_info();
       lost.set_name("lost");
       lost.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT4);
       add_weight(graph, "unread_weight", {1}).set_data_type(kFloat6);
       add_node(graph, "Affine", {"x"}, {"q"}, "n");
     },
     {"operator Affine 1: node 'n' (Affine)"}},
    {"operators of a function that imports nothing",
     [](auto& model, auto& graph) {
       onnx::FunctionProto& function = *model.add_functions();
       function.set_domain("local");
       function.set_name("f");
       add_node(function, "Gelu", {"a"}, {"b"}, "inside");
       add_node(graph, "f", {"x"}, {"p"}).set_domain("local");
     },
     {"operator Gelu 1: function 'f', node 'inside' (Gelu)"}},
    {"not what is converted from old versions",
     [](auto& model, auto& graph) {
       model.mutable_opset_import(0)->set_version(1);
       add_node(graph, "Affine", {"x"}, {"a"}, "affine");
       add_node(graph, "GRUUnit", {"x"}, {"b"}, "unit");
       add_attribute(add_node(graph, "Cast", {"x"}, {"c"}, "cast"), "to").set_s("COMPLEX64");
     },
     {"operator GRUUnit 1: node 'unit' (GRUUnit)",
      "element_type complex64 1: node 'cast' (Cast), attribute 'to'"}},
    {"versions",
     [](auto& model, auto&) {
       model.mutable_opset_import(0)->set_version(29);
       model.set_ir_version(99);
     },
     {"version IR version 99 1: the model", "version version 29 1: the model"}},
};

TEST(Survey, FindsAllThatIsMissing) {
  for (const SurveyCase& row : kSurveyCases) {
    SCOPED_TRACE(row.what);
    onnx::ModelProto model = relu_model();
    row.change(model, *model.mutable_graph());
    EXPECT_EQ(texts(survey(model).missing), row.expected);
  }
}

TEST(Survey, DescribesTheFile) {
  onnx::ModelProto model = relu_model();
  model.set_producer_name("maker");
  add_input(*model.mutable_graph(), "w", {3});
  add_weight(*model.mutable_graph(), "w", {3});
  add_node(*model.mutable_graph(), "Unknown", {"y"}, {"z"}).set_domain("com.example");
  const ModelDescription description = survey(model).model;
  EXPECT_EQ(description.ir_version, 8);
  EXPECT_EQ(description.producer, "maker");
  EXPECT_EQ(description.opsets.at(""), 13);
  ASSERT_EQ(description.inputs.size(), 1U) << "the other one has a value";
  EXPECT_EQ(description.inputs[0].text, "float32 2");
  ASSERT_EQ(description.nodes.size(), 2U);
  EXPECT_EQ(description.nodes[0].version, 13);
  EXPECT_EQ(description.nodes[1].name, "z");
  EXPECT_EQ(description.nodes[1].domain, "com.example");
  EXPECT_EQ(description.nodes[1].version, 0);
}

TEST(Survey, NamesOldVersions) {
  onnx::ModelProto model = relu_model();
  model.set_ir_version(2);
  model.clear_opset_import();
  add_node(*model.mutable_graph(), "Softmax", {"y"}, {"z"});
  const ModelDescription description = survey(model).model;
  EXPECT_EQ(description.opsets.at(""), 1);
  ASSERT_EQ(description.nodes.size(), 2U);
  EXPECT_EQ(description.nodes[0].version, 1);
  EXPECT_EQ(description.nodes[1].version, 1);
}

TEST(Survey, AFunctionThatCallsItselfEnds) {
  onnx::ModelProto model = relu_model();
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name("f");
  add_node(function, "f", {"a"}, {"b"});
  add_node(*model.mutable_graph(), "f", {"x"}, {"z"});
  EXPECT_THAT(survey(model).missing, IsEmpty());
}

MissingPart part(const std::string& name, int64_t count = 1) {
  return {.kind = "operator",
          .name = name,
          .domain = {},
          .reason = name + " of ai.onnx is not in this build",
          .count = count,
          .places = {"node 'n' (" + name + ")"}};
}

TEST(Survey, ARefusalSaysEverything) {
  const Error first(ErrorKind::Unsupported, "node 'n' (A)", "A of ai.onnx is not in this build");
  const auto text = [&](const std::vector<MissingPart>& missing) {
    return std::string(with_missing(first, "file 'm'", missing).what());
  };
  EXPECT_EQ(text({}), first.what());
  EXPECT_EQ(text({part("A")}), first.what());
  EXPECT_EQ(text({part("A", 3)}),
            "Unsupported: file 'm': A of ai.onnx is not in this build (3 nodes, the first is node "
            "'n' (A))");
  EXPECT_EQ(
      text({part("A"), part("B", 2)}),
      "Unsupported: file 'm': it needs 2 things that are missing: A of ai.onnx is not in this "
      "build (1 node: node 'n' (A)); B of ai.onnx is not in this build (2 nodes, the first is "
      "node 'n' (B))");
  // A reason that the survey does not know stays in the message.
  EXPECT_THAT(std::string(with_missing(Error(ErrorKind::Unsupported, "here", "too deep"),
                                       "file 'm'", {part("B")})
                              .what()),
              HasSubstr("here: too deep; besides, B of"));
}

TEST(Survey, WhatElseIsWrongIsSaidFirst) {
  const Error found(ErrorKind::InvalidModel, "initializer 'A'", "its file does not exist");
  EXPECT_EQ(
      std::string(with_missing(found, "file 'm'", {part("A", 2)}).what()),
      "InvalidModel: file 'm': initializer 'A': its file does not exist; besides, A of ai.onnx "
      "is not in this build (2 nodes, the first is node 'n' (A))");
  EXPECT_EQ(with_missing(found, "file 'm'", {}).what(), std::string(found.what()));
}

TEST(Survey, AVersionIsSaidOnce) {
  onnx::ModelProto model = relu_model();
  model.mutable_opset_import(0)->set_version(29);
  const Error found(ErrorKind::Unsupported, "file 'm'",
                    "expected an operator set from 1 to 28, found 29");
  std::vector<MissingPart> missing = survey(model).missing;
  EXPECT_EQ(std::string(with_missing(found, "file 'm'", missing).what()), found.what());
  missing.push_back(part("B"));
  const std::string text = with_missing(found, "file 'm'", missing).what();
  EXPECT_EQ(text.find("29"), text.rfind("29")) << text;
  EXPECT_EQ(text.find("file 'm'"), text.rfind("file 'm'")) << text;
  EXPECT_THAT(text, HasSubstr("it needs 2 things that are missing: version 29 of ai.onnx"));
}

TEST(Survey, ALongListIsCut) {
  std::vector<MissingPart> missing;
  for (int index = 0; index < 60; ++index) missing.push_back(part("Op" + std::to_string(index)));
  const Error first(ErrorKind::Unsupported, "node", "Op0 of ai.onnx is not in this build");
  const std::string message = with_missing(first, "file 'm'", missing).message();
  EXPECT_THAT(message, HasSubstr("it needs 60 things"));
  EXPECT_THAT(message, HasSubstr("Op7 of"));
  EXPECT_THAT(message, testing::EndsWith("and 52 more, which 'tessera inspect' lists"));
  EXPECT_LT(message.size(), 1000U);
}

}  // namespace
}  // namespace tessera::onnx_import
