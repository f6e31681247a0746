#include "import/onnx/attributes.h"

#include <utility>

#include "import/onnx/types.h"
#include "tessera/error.h"

namespace tessera::onnx_import {

using onnx::AttributeProto;

AttributeProto::AttributeType attribute_type(const AttributeProto& proto,
                                             const std::string& where) {
  if (proto.has_type() && proto.type() != AttributeProto::UNDEFINED) return proto.type();
  const std::pair<bool, AttributeProto::AttributeType> candidates[] = {
      {proto.has_f(), AttributeProto::FLOAT},
      {proto.has_i(), AttributeProto::INT},
      {proto.has_s(), AttributeProto::STRING},
      {proto.has_t(), AttributeProto::TENSOR},
      {proto.has_g(), AttributeProto::GRAPH},
      {proto.has_tp(), AttributeProto::TYPE_PROTO},
      {proto.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR},
      {proto.floats_size() > 0, AttributeProto::FLOATS},
      {proto.ints_size() > 0, AttributeProto::INTS},
      {proto.strings_size() > 0, AttributeProto::STRINGS},
      {proto.tensors_size() > 0, AttributeProto::TENSORS},
  };
  AttributeProto::AttributeType found = AttributeProto::UNDEFINED;
  for (const auto& [is_given, type] : candidates) {
    if (!is_given) continue;
    if (found != AttributeProto::UNDEFINED) {
      throw Error(ErrorKind::InvalidModel, where, "expected one value, found several");
    }
    found = type;
  }
  if (found == AttributeProto::UNDEFINED) {
    throw Error(ErrorKind::InvalidModel, where, "expected a value, found none");
  }
  return found;
}

Attribute read_attribute(const AttributeProto& proto, TensorReader& tensors,
                         const std::string& where) {
  switch (attribute_type(proto, where)) {
    case AttributeProto::FLOAT:
      return proto.f();
    case AttributeProto::INT:
      return proto.i();
    case AttributeProto::STRING:
      return proto.s();
    case AttributeProto::FLOATS:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    case AttributeProto::TENSOR:
      if (!proto.has_t()) {
        throw Error(ErrorKind::InvalidModel, where, "expected a tensor, found none");
      }
      return tensors.read(proto.t(), where);
    case AttributeProto::TENSORS: {
      std::vector<Tensor> list;
      for (const onnx::TensorProto& tensor : proto.tensors()) {
        list.push_back(tensors.read(tensor, where + "[" + std::to_string(list.size()) + "]"));
      }
      return list;
    }
    case AttributeProto::TYPE_PROTO: {
      DimNames names;
      return type_of(proto.tp(), where, where, names);
    }
    case AttributeProto::GRAPHS:
      throw Error(ErrorKind::Unsupported, where, "lists of graphs are not supported");
    case AttributeProto::SPARSE_TENSOR:
    case AttributeProto::SPARSE_TENSORS:
      throw Error(ErrorKind::Unsupported, where, "sparse tensors are not supported");
    case AttributeProto::TYPE_PROTOS:
      throw Error(ErrorKind::Unsupported, where, "lists of types are not supported");
    default:
      throw Error(ErrorKind::InvalidModel, where, "expected a value, found a nested graph");
  }
}

}  // namespace tessera::onnx_import
