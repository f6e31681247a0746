#include "import/onnx/model_metadata.h"

#include <set>
#include <utility>

#include "import/onnx/types.h"
#include "import/onnx/wire/byte_source.h"
#include "import/onnx/wire/wire_scan.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using onnx_import::ByteSource;
using onnx_import::onnx_type_name;

// ONNX's own names of element types, which differ from Tessera's for two.
std::string element_name(int onnx_type) {
  if (onnx_type == onnx::TensorProto::FLOAT) return "float";
  if (onnx_type == onnx::TensorProto::DOUBLE) return "double";
  return onnx_type_name(onnx_type);
}

std::string type_text(const onnx::TypeProto& type, int depth = 0) {
  if (depth > onnx_import::kMaxNestedTypes) return "";
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
      return "tensor(" + element_name(type.tensor_type().elem_type()) + ")";
    case onnx::TypeProto::kSparseTensorType:
      return "sparse_tensor(" + element_name(type.sparse_tensor_type().elem_type()) + ")";
    case onnx::TypeProto::kSequenceType:
      return "seq(" + type_text(type.sequence_type().elem_type(), depth + 1) + ")";
    case onnx::TypeProto::kOptionalType:
      return "optional(" + type_text(type.optional_type().elem_type(), depth + 1) + ")";
    case onnx::TypeProto::kMapType:
      return "map(" + element_name(type.map_type().key_type()) + "," +
             type_text(type.map_type().value_type(), depth + 1) + ")";
    default:
      return "";
  }
}

Dimension dimension(const onnx::TensorShapeProto::Dimension& proto) {
  // Some exporters write -1 for an unknown dimension.
  if (proto.has_dim_value() && proto.dim_value() >= 0) return {proto.dim_value(), ""};
  return {std::nullopt, proto.dim_param()};
}

DeclaredValue declared(const onnx::ValueInfoProto& proto) {
  DeclaredValue value;
  value.name = proto.name();
  value.type = type_text(proto.type());
  const auto& tensor = proto.type().tensor_type();
  if (!proto.type().has_tensor_type() || !tensor.has_shape()) return value;
  value.shape.emplace();
  for (const auto& dim : tensor.shape().dim()) value.shape->push_back(dimension(dim));
  return value;
}

ModelMetadata metadata_of(const ByteSource& source) {
  const onnx::ModelProto model = onnx_import::scan_model(source).message;
  if (!model.has_graph()) {
    throw Error(ErrorKind::InvalidModel, source.location(),
                "expected an ONNX model, found no graph in it");
  }
  const onnx::GraphProto& graph = model.graph();
  ModelMetadata metadata{.ir_version = model.ir_version(),
                         .producer_name = model.producer_name(),
                         .graph_name = graph.name(),
                         .domain = model.domain(),
                         .description = model.doc_string(),
                         .graph_description = graph.doc_string()};
  if (model.has_model_version()) metadata.version = model.model_version();
  for (const auto& entry : model.metadata_props()) {
    metadata.custom_metadata[entry.key()] = entry.value();
  }
  std::set<std::string> initializers;
  for (const auto& initializer : graph.initializer()) initializers.insert(initializer.name());
  for (const auto& initializer : graph.sparse_initializer()) {
    initializers.insert(initializer.values().name());
  }
  for (const auto& input : graph.input()) {
    metadata.inputs.push_back(declared(input));
    metadata.inputs.back().has_initializer = initializers.contains(input.name());
  }
  for (const auto& output : graph.output()) metadata.outputs.push_back(declared(output));
  return metadata;
}

}  // namespace

ModelMetadata read_metadata(const std::filesystem::path& file) {
  return metadata_of(ByteSource::open(file));
}

ModelMetadata read_metadata_bytes(std::string_view bytes) {
  return metadata_of(ByteSource::over(bytes));
}

}  // namespace tessera
