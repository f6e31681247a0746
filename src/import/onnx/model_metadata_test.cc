#include "import/onnx/model_metadata.h"

#include "base/errors/error_test.h"
#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

onnx::ValueInfoProto& add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list,
                                const std::string& name, int type) {
  onnx::ValueInfoProto& value = *list.Add();
  value.set_name(name);
  value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return value;
}

TEST(ModelMetadata, GivesWhatTheFileDeclares) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("a trainer");
  model.set_domain("ai.example");
  model.set_doc_string("of the model");
  model.set_model_version(7);
  auto& entry = *model.add_metadata_props();
  entry.set_key("author");
  entry.set_value("somebody");
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("net");
  graph.set_doc_string("of the graph");
  onnx::TensorShapeProto& shape = *add_value(*graph.mutable_input(), "x", onnx::TensorProto::FLOAT)
                                       .mutable_type()
                                       ->mutable_tensor_type()
                                       ->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_value(3);
  shape.add_dim()->set_dim_value(-1);
  add_value(*graph.mutable_input(), "w", onnx::TensorProto::DOUBLE);
  graph.add_initializer()->set_name("w");
  onnx::ValueInfoProto& list = *graph.add_output();
  list.set_name("list");
  list.mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::INT64);

  const ModelMetadata metadata = read_metadata_bytes(model.SerializeAsString());
  EXPECT_EQ(metadata.ir_version, 8);
  EXPECT_EQ(metadata.producer_name, "a trainer");
  EXPECT_EQ(metadata.graph_name, "net");
  EXPECT_EQ(metadata.domain, "ai.example");
  EXPECT_EQ(metadata.description, "of the model");
  EXPECT_EQ(metadata.graph_description, "of the graph");
  EXPECT_EQ(metadata.version, 7);
  EXPECT_EQ(metadata.custom_metadata.at("author"), "somebody");
  ASSERT_EQ(metadata.inputs.size(), 2U);
  const DeclaredValue& x = metadata.inputs[0];
  EXPECT_EQ(x.type, "tensor(float)");
  EXPECT_FALSE(x.has_initializer);
  ASSERT_TRUE(x.shape && x.shape->size() == 3);
  EXPECT_EQ((*x.shape)[0].symbol, "batch");
  EXPECT_EQ((*x.shape)[1].value, 3);
  EXPECT_FALSE((*x.shape)[2].value);
  EXPECT_EQ((*x.shape)[2].symbol, "");
  EXPECT_EQ(metadata.inputs[1].type, "tensor(double)");
  EXPECT_TRUE(metadata.inputs[1].has_initializer);
  EXPECT_FALSE(metadata.inputs[1].shape);
  ASSERT_EQ(metadata.outputs.size(), 1U);
  EXPECT_EQ(metadata.outputs[0].type, "seq(tensor(int64))");
}

TEST(ModelMetadata, RefusesWhatIsNoModel) {
  for (const char* bytes : {"", "no model"}) {
    EXPECT_EQ(kind_of_error([&] { read_metadata_bytes(bytes); }), ErrorKind::InvalidModel);
  }
  EXPECT_THROW(read_metadata("/no/such/file"), Error);
}

}  // namespace
}  // namespace tessera::onnx_import
