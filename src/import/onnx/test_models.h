// Shared by tests of import: small models built in code, ops for them, and checks of errors.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "graph/verify.h"
#include "import/onnx/import.h"
#include "onnx.pb.h"
#include "tessera/error.h"

namespace tessera::onnx_import {

// Ops with schemas but without rules and kernels, so that these tests do not depend on real ops.
inline ops::Registry test_registry() {
  ops::Registry registry;
  const auto add = [&](ops::Op op) {
    op.versions = {1, 7, 13};
    registry.add(std::move(op));
  };
  const ops::Parameter x = {"X", "T"};
  const ops::Parameter any = {"any", "T", ops::Arity::Optional};
  add({.name = "Relu", .inputs = {x}, .outputs = {{"Y", "T"}}});
  add({.name = "Identity", .inputs = {x}, .outputs = {{"Y", "T"}}});
  add({.name = "Add", .inputs = {{"A", "T"}, {"B", "T"}}, .outputs = {{"C", "T"}}});
  add({.name = "Reshape", .inputs = {x, {"shape", "I"}}, .outputs = {{"Y", "T"}}});
  add({.name = "Clip", .inputs = {x, any, any}, .outputs = {{"Y", "T"}, any, any}});
  add({.name = "Elu",
       .inputs = {x},
       .outputs = {{"Y", "T"}},
       .attributes = {{"alpha", AttributeKind::Float, 1.0F}}});
  add({.name = "Conv",
       .inputs = {x, {"W", "T"}, any},
       .outputs = {{"Y", "T"}},
       .attributes = {{"pads", AttributeKind::Ints, std::nullopt},
                      {"auto_pad", AttributeKind::String, std::string("NOTSET")}}});
  add({.name = "Constant",
       .outputs = {{"Y", "T"}},
       .attributes = {{"value", AttributeKind::Tensor, std::nullopt}}});
  add({.name = "If",
       .inputs = {{"cond", "B"}},
       .outputs = {{"outputs", "T", ops::Arity::Variadic}},
       .bodies = {"then_branch", "else_branch"}});
  ops::Op retired = {.name = "Upsample", .inputs = {x}, .outputs = {{"Y", "T"}}};
  retired.last_version = 9;
  add(std::move(retired));
  ops::Op young = {.name = "Gelu", .versions = {20}, .inputs = {x}, .outputs = {{"Y", "T"}}};
  registry.add(std::move(young));
  return registry;
}

inline onnx::ModelProto make_model(int opset = 13) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("g");
  return model;
}

template <class Parent>
onnx::NodeProto& add_node(Parent& parent, const std::string& op,
                          const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& name = "") {
  onnx::NodeProto& node = *parent.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  if (!name.empty()) node.set_name(name);
  return node;
}

inline void set_type(onnx::ValueInfoProto& value, const std::string& name,
                     const std::vector<int64_t>& dims, int type = onnx::TensorProto::FLOAT) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

inline void add_input(onnx::GraphProto& graph, const std::string& name,
                      const std::vector<int64_t>& dims = {2}) {
  set_type(*graph.add_input(), name, dims);
}

inline void name_dimension(onnx::GraphProto& graph, int input, int axis, const std::string& name) {
  auto& tensor = *graph.mutable_input(input)->mutable_type()->mutable_tensor_type();
  tensor.mutable_shape()->mutable_dim(axis)->set_dim_param(name);
}

inline void add_output(onnx::GraphProto& graph, const std::string& name) {
  graph.add_output()->set_name(name);
}

// Adds a float32 initializer in raw_data, with all elements equal to `value`.
inline onnx::TensorProto& add_weight(onnx::GraphProto& graph, const std::string& name,
                                     const std::vector<int64_t>& dims, float value = 1) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  const std::vector<float> values(static_cast<size_t>(element_count(dims)), value);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

// x -> Relu -> y, the starting point of most tests.
inline onnx::ModelProto relu_model() {
  onnx::ModelProto model = make_model();
  add_input(*model.mutable_graph(), "x");
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"}, "relu");
  add_output(*model.mutable_graph(), "y");
  return model;
}

inline ImportedModel import(const onnx::ModelProto& model,
                            const std::filesystem::path& folder = "/nonexistent") {
  return import_onnx_bytes(model.SerializeAsString(), folder, test_registry(),
                           Log([](const std::string&) {}));
}

// Runs `action` and expects an error of `kind` whose text contains all of `parts`.
template <class Action>
void expect_error(const Action& action, ErrorKind kind, const std::vector<std::string>& parts) {
  try {
    action();
    ADD_FAILURE() << "expected " << name(kind) << ", found no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  }
}

inline const Value& value(const Graph& graph, const std::string& name) {
  const ValueId id = find_value(graph, name);
  if (id.is_none()) throw std::out_of_range("no value '" + name + "'");
  return graph[id];
}

inline std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

}  // namespace tessera::onnx_import
