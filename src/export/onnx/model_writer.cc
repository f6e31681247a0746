#include "export/onnx/model_writer.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/errors/check.h"
#include "base/tensor/small_types.h"
#include "graph/dim_names.h"
#include "ops/control_flow/bodies.h"
#include "ops/onnx_types.h"
#include "tessera/error.h"

namespace tessera::onnx_export {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores raw_data little-endian");

using onnx::AttributeProto;
using onnx::TensorProto;

// Version 8 introduced the newest feature that most files need (optional types) and is read by
// older programs. Version 10 introduced metadata of nodes; ir_version_of() knows those of types.
constexpr int64_t kIrVersion = 8;
constexpr int64_t kIrVersionWithNotes = 10;

// The version that introduced an element type.
int64_t ir_version_of(DataType type) {
  if (!is_small(type)) return 0;
  switch (type) {
    case DataType::Int4:
    case DataType::UInt4:
      return 10;
    case DataType::Float4E2M1:
      return 11;
    case DataType::Float8E8M0:
      return 12;
    case DataType::Int2:
    case DataType::UInt2:
      return 13;
    default:
      return 9;  // 8-bit floats
  }
}

int64_t ir_version_of(const Graph& graph) {
  int64_t version = kIrVersion;
  for (const Value& value : graph.values) {
    version = std::max(version, ir_version_of(value.type.element));
  }
  for (const Node& node : graph.nodes) {
    for (const Body& body : node.bodies) version = std::max(version, ir_version_of(body.graph));
  }
  return version;
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
      proto.mutable_map_type()->set_key_type(ops::onnx_number_of(type.element));
      return write_type(type.contents[0], *proto.mutable_map_type()->mutable_value_type());
    case Type::Kind::Tensor:
      break;
  }
  onnx::TypeProto::Tensor& tensor = *proto.mutable_tensor_type();
  tensor.set_elem_type(ops::onnx_number_of(type.element));
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
  proto.set_data_type(ops::onnx_number_of(tensor.type()));
  for (const int64_t dim : tensor.dims()) proto.add_dims(dim);
  if (tensor.is_strings()) {
    for (const std::string& text : tensor.as<std::string>()) proto.add_string_data(text);
    return;
  }
  if (!is_packed(tensor.type())) {
    proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
    return;
  }
  std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(tensor.type(), tensor.elements())));
  pack(tensor.type(), tensor.as<uint8_t>(), packed);
  proto.set_raw_data(packed.data(), packed.size());
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
      if (ops::is_declared_type_name(key)) continue;
      AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(key);
      std::visit(AttributeWriter{attribute}, value);
    }
    for (const Body& body : node.bodies) {
      AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(body.attribute);
      attribute.set_type(AttributeProto::GRAPH);
      write(body.graph, *attribute.mutable_g(), true);
      write_declared_types(node, body, *attribute.mutable_g());
    }
    for (const auto& [key, value] : node.metadata) {
      onnx::StringStringEntryProto& entry = *proto.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
      has_notes_ = true;
    }
  }

  // A declaration is in the type of the output that it is about.
  static void write_declared_types(const Node& node, const Body& body, onnx::GraphProto& proto) {
    for (size_t index = 0; index < body.graph.outputs.size(); ++index) {
      const std::string name = ops::declared_type_name(body.attribute, index);
      const Type* const declared = node.attributes.find_type(name);
      if (declared == nullptr) continue;
      Value output = body.graph[body.graph.outputs[index]];
      output.type = ops::with_declared_sizes(std::move(output.type), declared);
      onnx::ValueInfoProto& written = *proto.mutable_output(static_cast<int>(index));
      written.Clear();
      write_value(output, written);
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
  model.set_ir_version(
      std::max(writer.has_notes() ? kIrVersionWithNotes : kIrVersion, ir_version_of(graph)));
  model.set_producer_name("tessera");
  for (const auto& [domain, version] : opsets) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  return model;
}

}  // namespace tessera::onnx_export
