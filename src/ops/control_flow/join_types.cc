#include "ops/control_flow/join_types.h"

#include <utility>

namespace tessera::ops {
namespace {

// Whether the symbol is, or may contain, one that a rule made for a size that depends on data.
bool is_of_one_graph(const Dim& dim) {
  return !dim.is_known() && dim.symbol().find_first_of("?~") != std::string::npos;
}

template <class Predicate>
Type with_unknown_dims(Type type, const UnknownDim& unknown, const Predicate& is_unknown) {
  if (type.shape) {
    for (size_t axis = 0; axis < type.shape->size(); ++axis) {
      if (is_unknown((*type.shape)[axis])) (*type.shape)[axis] = unknown(axis);
    }
  }
  for (Type& content : type.contents) {
    content = with_unknown_dims(std::move(content), unknown, is_unknown);
  }
  return type;
}

std::optional<Shape> join_shapes(const std::optional<Shape>& left,
                                 const std::optional<Shape>& right, const UnknownDim& unknown) {
  if (!left || !right || left->size() != right->size()) return std::nullopt;
  Shape joined = *left;
  for (size_t axis = 0; axis < joined.size(); ++axis) {
    if (joined[axis] != (*right)[axis]) joined[axis] = unknown(axis);
  }
  return joined;
}

}  // namespace

std::optional<Type> join_types(const Type& left, const Type& right, const UnknownDim& unknown) {
  using Kind = Type::Kind;
  if (left.kind == Kind::Unknown) return right;
  if (right.kind == Kind::Unknown) return left;
  if (left.kind != right.kind) {
    const bool is_left = left.kind == Kind::Optional;
    if (!is_left && right.kind != Kind::Optional) return std::nullopt;
    std::optional<Type> content = join_types(is_left ? left.contents.front() : left,
                                             is_left ? right : right.contents.front(), unknown);
    if (!content) return std::nullopt;
    return Type::optional(*std::move(content));
  }
  Type joined = left;
  if (joined.element == DataType::Undefined) joined.element = right.element;
  const bool is_same = right.element == DataType::Undefined || joined.element == right.element;
  if (!is_same || left.contents.size() != right.contents.size()) return std::nullopt;
  joined.shape = join_shapes(left.shape, right.shape, unknown);
  for (size_t index = 0; index < joined.contents.size(); ++index) {
    std::optional<Type> content = join_types(left.contents[index], right.contents[index], unknown);
    if (!content) return std::nullopt;
    joined.contents[index] = *std::move(content);
  }
  return joined;
}

Type outside_of_graph(Type type, const UnknownDim& unknown) {
  return with_unknown_dims(std::move(type), unknown, is_of_one_graph);
}

Type element_of_list(Type content, const UnknownDim& unknown) {
  return with_unknown_dims(std::move(content), unknown,
                           [](const Dim& dim) { return !dim.is_known(); });
}

}  // namespace tessera::ops
