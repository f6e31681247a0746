#include "ops/shape_rules.h"

#include <algorithm>

#include "graph/dim_names.h"
#include "ops/evaluate.h"

namespace tessera::ops {
namespace {

void check_list(const InferContext& context, size_t index) {
  const Shape* shape = context.shape(index);
  if (shape != nullptr && shape->size() > 1) {
    context.fail_input(index, "expected a list of integers, found shape " + text(*shape));
  }
}

}  // namespace

Dim unknown_dim(const InferContext& context, size_t output, size_t axis) {
  std::string symbol = "?";
  symbol += quoted_for_symbol(context.node().name);
  return Dim::symbol(symbol + "." + std::to_string(output) + "." + std::to_string(axis));
}

std::optional<Shape> unknown_shape(const InferContext& context, size_t output, int64_t rank) {
  if (rank > kMaxDimensions) return std::nullopt;
  Shape shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(unknown_dim(context, output, static_cast<size_t>(axis)));
  }
  return shape;
}

std::optional<std::vector<Dim>> dim_list(const InferContext& context, size_t index) {
  check_list(context, index);
  if (const auto& elements = context.elements(index)) return elements;
  const Tensor* constant = context.constant(index);
  if (constant == nullptr) return std::nullopt;
  std::vector<Dim> dims;
  if (constant->type() == DataType::Int64) {
    for (const int64_t value : constant->as<int64_t>()) dims.emplace_back(value);
  } else if (constant->type() == DataType::Int32) {
    for (const int32_t value : constant->as<int32_t>()) dims.emplace_back(int64_t{value});
  } else {
    return std::nullopt;
  }
  return dims;
}

std::optional<std::vector<int64_t>> integer_list(const InferContext& context, size_t index) {
  const auto dims = dim_list(context, index);
  if (!dims || !is_known(*dims)) return std::nullopt;
  return dims_from(*dims);
}

std::optional<int64_t> list_length(const InferContext& context, size_t index) {
  check_list(context, index);
  if (const Shape* shape = context.shape(index)) {
    if (shape->empty()) return 1;
    if (shape->front().is_known()) return shape->front().value();
  }
  const auto& elements = context.elements(index);
  if (elements) return static_cast<int64_t>(elements->size());
  return std::nullopt;
}

std::vector<int64_t> normalized_axes(const InferContext& context, std::span<const int64_t> axes,
                                     int64_t rank) {
  std::vector<bool> is_named(static_cast<size_t>(rank), false);
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    const int64_t normalized = context.normalized_axis(axis, rank);
    if (is_named[static_cast<size_t>(normalized)]) {
      context.fail("expected each axis once, found axis " + std::to_string(axis) + " twice");
    }
    is_named[static_cast<size_t>(normalized)] = true;
    result.push_back(normalized);
  }
  return result;
}

Dim product(std::vector<Dim> dims) {
  if (std::find(dims.begin(), dims.end(), Dim(0)) != dims.end()) return 0;
  std::sort(dims.begin(), dims.end(),
            [](const Dim& left, const Dim& right) { return left.symbol() < right.symbol(); });
  Dim number = 1;
  Dim symbols = 1;
  for (const Dim& dim : dims) {
    Dim& part = dim.is_known() ? number : symbols;
    part = multiply(part, dim);
  }
  return multiply(symbols, number);
}

std::optional<int64_t> small_count(const std::optional<Shape>& shape) {
  if (!shape || !is_known(*shape)) return std::nullopt;
  if (std::find(shape->begin(), shape->end(), Dim(0)) != shape->end()) return 0;
  int64_t count = 1;
  for (const Dim& dim : *shape) {
    // Checked per dimension, because the product may exceed 64 bits.
    if (dim.value() < 0 || dim.value() > kMaxShapeElements) return std::nullopt;
    count *= dim.value();
    if (count > kMaxShapeElements) return std::nullopt;
  }
  return count;
}

void check_one_dimension(const InferContext& context, size_t index) {
  const Shape* shape = context.shape(index);
  if (shape != nullptr && shape->size() != 1) {
    context.fail_input(index, "expected one dimension, found shape " + text(*shape));
  }
}

const std::vector<Dim>* propagated_elements(const InferContext& context, size_t index) {
  const InferInput& input = context.input(index);
  if (!input.elements) return nullptr;
  const auto count = small_count(input.type.shape);
  if (count != static_cast<int64_t>(input.elements->size())) return nullptr;
  return &*input.elements;
}

}  // namespace tessera::ops
