#include "import/onnx/declared_types.h"

#include "import/onnx/types.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

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
