#include "export/onnx/model_writer.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/errors/check.h"
#include "graph/dim_names.h"
#include "tessera/error.h"

namespace tessera::onnx_export {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores raw_data little-endian");

using onnx::AttributeProto;
using onnx::TensorProto;

// Version 8 introduced the newest feature that most files need (optional types) and is read by
// older programs. Version 10 introduced metadata of nodes.
constexpr int64_t kIrVersion = 8;
constexpr int64_t kIrVersionWithNotes = 10;

int onnx_type(DataType type) {
  switch (type) {
    case DataType::Undefined:
      return TensorProto::UNDEFINED;
    case DataType::Bool:
      return TensorProto::BOOL;
    case DataType::Int8:
      return TensorProto::INT8;
    case DataType::Int16:
      return TensorProto::INT16;
    case DataType::Int32:
      return TensorProto::INT32;
    case DataType::Int64:
      return TensorProto::INT64;
    case DataType::UInt8:
      return TensorProto::UINT8;
    case DataType::UInt16:
      return TensorProto::UINT16;
    case DataType::UInt32:
      return TensorProto::UINT32;
    case DataType::UInt64:
      return TensorProto::UINT64;
    case DataType::Float16:
      return TensorProto::FLOAT16;
    case DataType::BFloat16:
      return TensorProto::BFLOAT16;
    case DataType::Float32:
      return TensorProto::FLOAT;
    case DataType::Float64:
      return TensorProto::DOUBLE;
    case DataType::String:
      return TensorProto::STRING;
    case DataType::Sequence:
    case DataType::Map:
      break;
  }
  return TensorProto::UNDEFINED;
}

void write_type(const Type& type, onnx::TypeProto& proto) {
  switch (type.kind) {
    case Type::Kind::Unknown:
      return;
    case Type::Kind::Sequence:
      return write_type(type.contents[0], *proto.mutable_sequence_type()->mutable_elem_type());
    case Type::Kind::Optional:
      return write_type(type.contents[0], *proto.mutable_optional_type()->mutable_elem_type());
    case Type::Kind::Map:
      proto.mutable_map_type()->set_key_type(onnx_type(type.element));
      return write_type(type.contents[0], *proto.mutable_map_type()->mutable_value_type());
    case Type::Kind::Tensor:
      break;
  }
  onnx::TypeProto::Tensor& tensor = *proto.mutable_tensor_type();
  tensor.set_elem_type(onnx_type(type.element));
  if (!type.shape) return;
  onnx::TensorShapeProto& shape = *tensor.mutable_shape();
  for (const Dim& dim : *type.shape) {
    if (dim.is_known()) {
      shape.add_dim()->set_dim_value(dim.value());
    } else {
      shape.add_dim()->set_dim_param(shown_text(dim));
    }
  }
}

void write_value(const Value& value, onnx::ValueInfoProto& proto) {
  proto.set_name(value.name);
  if (value.type.kind != Type::Kind::Unknown) write_type(value.type, *proto.mutable_type());
}

void write_tensor(const Tensor& tensor, TensorProto& proto) {
  proto.set_data_type(onnx_type(tensor.type()));
  for (const int64_t dim : tensor.dims()) proto.add_dims(dim);
  if (tensor.is_strings()) {
    for (const std::string& text : tensor.as<std::string>()) proto.add_string_data(text);
    return;
  }
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

// Sets the value of `proto` to that of an attribute.
struct AttributeWriter {
  AttributeProto& proto;

  void operator()(int64_t value) const {
    proto.set_type(AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto.set_type(AttributeProto::INTS);
    proto.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<float>& values) const {
    proto.set_type(AttributeProto::FLOATS);
    proto.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    proto.set_type(AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const Tensor& value) const {
    proto.set_type(AttributeProto::TENSOR);
    write_tensor(value, *proto.mutable_t());
  }
  void operator()(const std::vector<Tensor>& values) const {
    proto.set_type(AttributeProto::TENSORS);
    for (const Tensor& value : values) write_tensor(value, *proto.add_tensors());
  }
  void operator()(const Type& value) const {
    proto.set_type(AttributeProto::TYPE_PROTO);
    write_type(value, *proto.mutable_tp());
  }
};

class GraphWriter {
 public:
  void write(const Graph& graph, onnx::GraphProto& proto, bool is_nested) {
    proto.set_name(graph.name.empty() ? "graph" : graph.name);
    for (const ValueId input : graph.inputs) {
      if (!is_nested) check_input(graph[input]);
      write_value(graph[input], *proto.add_input());
    }
    for (const ValueId output : graph.outputs) write_value(graph[output], *proto.add_output());
    write_constants(graph, proto);
    for (const Node& node : graph.nodes) write_node(graph, node, *proto.add_node());
    write_inner_types(graph, proto);
  }

  bool has_notes() const { return has_notes_; }

 private:
  static void check_input(const Value& input) {
    const bool is_open = input.type.kind == Type::Kind::Unknown ||
                         (input.type.is_tensor() && input.type.element == DataType::Undefined);
    if (!is_open) return;
    throw Error(
        ErrorKind::Unsupported, "graph input '" + input.name + "'",
        "a file has to tell its element type, which is not known; found " + text(input.type));
  }

  static void write_constants(const Graph& graph, onnx::GraphProto& proto) {
    const std::vector<int> uses = use_counts(graph);
    for (size_t index = 0; index < graph.values.size(); ++index) {
      const Value& value = graph.values[index];
      if (!value.is_constant() || uses[index] == 0) continue;
      TensorProto& tensor = *proto.add_initializer();
      tensor.set_name(value.name);
      write_tensor(elements_of(value), tensor);
    }
  }

  void write_node(const Graph& graph, const Node& node, onnx::NodeProto& proto) {
    TESSERA_CHECK(!node.is_removed, "what passes cut loose is removed between them");
    const auto name = [&](ValueId id) { return id.is_none() ? std::string() : graph[id].name; };
    proto.set_name(node.name);
    proto.set_op_type(node.op);
    if (!node.domain.empty()) proto.set_domain(node.domain);
    for (const ValueId input : node.inputs) proto.add_input(name(input));
    for (const ValueId output : node.outputs) proto.add_output(name(output));
    for (const auto& [key, value] : node.attributes.all()) {
      AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(key);
      std::visit(AttributeWriter{attribute}, value);
    }
    for (const Body& body : node.bodies) {
      AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(body.attribute);
      attribute.set_type(AttributeProto::GRAPH);
      write(body.graph, *attribute.mutable_g(), true);
    }
    for (const auto& [key, value] : node.metadata) {
      onnx::StringStringEntryProto& entry = *proto.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
      has_notes_ = true;
    }
  }

  static void write_inner_types(const Graph& graph, onnx::GraphProto& proto) {
    std::unordered_set<int32_t> outputs;
    for (const ValueId output : graph.outputs) outputs.insert(output.index);
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.outputs) {
        if (id.is_none() || outputs.contains(id.index)) continue;
        if (graph[id].type.kind != Type::Kind::Unknown) {
          write_value(graph[id], *proto.add_value_info());
        }
      }
    }
  }

  bool has_notes_ = false;
};

}  // namespace

onnx::ModelProto write_model(const Graph& graph, const std::map<std::string, int>& opsets) {
  onnx::ModelProto model;
  GraphWriter writer;
  writer.write(graph, *model.mutable_graph(), false);
  model.set_ir_version(writer.has_notes() ? kIrVersionWithNotes : kIrVersion);
  model.set_producer_name("tessera");
  for (const auto& [domain, version] : opsets) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  return model;
}

}  // namespace tessera::onnx_export
