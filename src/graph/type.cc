#include "graph/type.h"

#include <utility>

#include "tessera/tensor.h"

namespace tessera {

Type Type::tensor(DataType element, std::optional<Shape> shape) {
  return {Kind::Tensor, element, std::move(shape), {}};
}

Type Type::sequence(Type content) {
  return {Kind::Sequence, DataType::Undefined, std::nullopt, {std::move(content)}};
}

Type Type::optional(Type content) {
  return {Kind::Optional, DataType::Undefined, std::nullopt, {std::move(content)}};
}

Type Type::map(DataType key, Type content) {
  return {Kind::Map, key, std::nullopt, {std::move(content)}};
}

bool Type::is_known_tensor() const {
  return is_tensor() && element != DataType::Undefined && shape.has_value() &&
         tessera::is_known(*shape);
}

std::string text(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Unknown:
      return "unknown";
    case Type::Kind::Tensor:
      return std::string(name(type.element)) + " " + (type.shape ? text(*type.shape) : "?");
    case Type::Kind::Sequence:
      return "sequence(" + text(type.contents.front()) + ")";
    case Type::Kind::Optional:
      return "optional(" + text(type.contents.front()) + ")";
    case Type::Kind::Map:
      return "map(" + std::string(name(type.element)) + ", " + text(type.contents.front()) + ")";
  }
  return "unknown";
}

std::optional<int64_t> type_bytes(const Type& type) {
  if (!type.is_known_tensor()) return std::nullopt;
  return tensor_bytes(type.element, dims_from(*type.shape));
}

}  // namespace tessera
