#include "import/onnx/types.h"

#include <utility>

#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

DataType element_of(int onnx_type, const std::string& where) {
  if (onnx_type == onnx::TensorProto::UNDEFINED) return DataType::Undefined;
  const std::optional<DataType> type = data_type_of(onnx_type);
  if (!type) {
    throw Error(ErrorKind::Unsupported, where,
                "elements of " + onnx_type_name(onnx_type) + " are not supported");
  }
  return *type;
}

Dim dim_of(const onnx::TensorShapeProto::Dimension& proto, size_t axis, const std::string& value,
           DimNames& names) {
  // Some exporters write -1 for an unknown dimension.
  if (proto.has_dim_value() && proto.dim_value() >= 0) return proto.dim_value();
  if (is_dim_name(proto.dim_param())) return names.next(proto.dim_param());
  return Dim::symbol(quoted_for_symbol(value) + "[" + std::to_string(axis) + "]");
}

Type tensor_type_of(const onnx::TypeProto::Tensor& proto, const std::string& where,
                    const std::string& value, DimNames& names) {
  const DataType element = element_of(proto.elem_type(), where);
  if (!proto.has_shape()) return Type::tensor(element);
  if (proto.shape().dim_size() > kMaxDims) {
    throw Error(ErrorKind::Unsupported, where,
                "expected at most " + std::to_string(kMaxDims) + " dimensions, found " +
                    std::to_string(proto.shape().dim_size()));
  }
  Shape shape;
  for (const auto& dim : proto.shape().dim()) {
    shape.push_back(dim_of(dim, shape.size(), value, names));
  }
  return Type::tensor(element, std::move(shape));
}

bool has_other_element(const Type& declared, const Type& constant) {
  if (declared.kind == Type::Kind::Unknown) return false;
  if (!declared.is_tensor()) return true;
  return declared.element != DataType::Undefined && declared.element != constant.element;
}

bool has_other_shape(const Type& declared, const Type& constant) {
  if (!declared.shape) return false;
  if (declared.shape->size() != constant.shape->size()) return true;
  for (size_t axis = 0; axis < declared.shape->size(); ++axis) {
    const Dim& dim = (*declared.shape)[axis];
    if (dim.is_known() && dim != (*constant.shape)[axis]) return true;
  }
  return false;
}

std::string contradiction(const Type& declared, const Type& constant) {
  return "it is declared as " + text(declared) + ", but its initializer is " + text(constant);
}

}  // namespace

Type type_of(const onnx::TypeProto& proto, const std::string& where, const std::string& value,
             DimNames& names) {
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType:
      return tensor_type_of(proto.tensor_type(), where, value, names);
    case onnx::TypeProto::kSequenceType:
      return Type::sequence(type_of(proto.sequence_type().elem_type(), where, value, names));
    case onnx::TypeProto::kOptionalType:
      return Type::optional(type_of(proto.optional_type().elem_type(), where, value, names));
    case onnx::TypeProto::kMapType:
      return Type::map(element_of(proto.map_type().key_type(), where),
                       type_of(proto.map_type().value_type(), where, value, names));
    case onnx::TypeProto::kSparseTensorType:
      throw Error(ErrorKind::Unsupported, where, "sparse tensors are not supported");
    case onnx::TypeProto::kOpaqueType:
      throw Error(ErrorKind::Unsupported, where,
                  "the opaque type '" + proto.opaque_type().name() + "' is not supported");
    case onnx::TypeProto::VALUE_NOT_SET:
      break;
  }
  return {};
}

DeclaredTypes::DeclaredTypes(const GraphSite& site, DimNames& names, const Log& log)
    : site_(site), names_(names), log_(log) {
  // The declaration of a graph output overrides that in value_info.
  for (const auto* list : {&site.proto.value_info(), &site.proto.output()}) {
    for (const onnx::ValueInfoProto& entry : *list) {
      if (entry.has_type()) inner_[site.frame.rename(entry.name())] = &entry;
    }
  }
}

Type DeclaredTypes::type_of_value(const onnx::ValueInfoProto& proto, const std::string& name,
                                  const std::string& where) const {
  return type_of(proto.type(), where, site_.symbols + name, names_);
}

Type DeclaredTypes::input_type(const onnx::ValueInfoProto& input, const std::string& where) const {
  Type type = type_of_value(input, site_.frame.rename(input.name()), where);
  const bool is_open =
      type.kind == Type::Kind::Unknown || (type.is_tensor() && type.element == DataType::Undefined);
  if (is_open && site_.outer == nullptr) {
    throw Error(ErrorKind::InvalidModel, where, "expected an element type, found none");
  }
  return type;
}

Type DeclaredTypes::inner_type(const std::string& name) const {
  const auto found = inner_.find(name);
  if (found == inner_.end()) return {};
  return type_of_value(*found->second, name, site_.where + "value '" + name + "'");
}

void DeclaredTypes::check_constant(const std::string& name, const Type& type) const {
  const Type declared = inner_type(name);
  const std::string where = site_.where + "initializer '" + name + "'";
  if (has_other_element(declared, type)) {
    throw Error(ErrorKind::InvalidModel, where, contradiction(declared, type));
  }
  if (has_other_shape(declared, type)) log_.warn(where + ": " + contradiction(declared, type));
}

void check_input_constant(const Type& input, const Type& constant, const std::string& where) {
  if (has_other_element(input, constant) || has_other_shape(input, constant)) {
    throw Error(ErrorKind::InvalidModel, where, contradiction(input, constant));
  }
}

}  // namespace tessera::onnx_import
