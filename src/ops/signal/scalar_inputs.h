// Integer inputs of one element: lengths, steps and counts of the ops on signals.
#pragma once

#include <optional>
#include <string>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {

// fail_input()s unless the input may have one element.
inline void check_scalar_input(const InferContext& context, size_t index) {
  const Shape* shape = context.shape(index);
  if (shape != nullptr && is_known(*shape) && product(*shape) != Dim(1)) {
    context.fail_input(index, "expected one element, found shape " + text(*shape));
  }
}

// The element of such an input; nullopt if the input is omitted or its element is unknown.
// fail_input()s if it is known to be below `least`.
inline std::optional<Dim> scalar_dim(const InferContext& context, size_t index, int64_t least) {
  if (!context.has_input(index)) return std::nullopt;
  check_scalar_input(context, index);
  const auto dims = dim_list(context, index);
  if (!dims || dims->size() != 1) return std::nullopt;
  const Dim& dim = dims->front();
  if (dim.is_known() && dim.value() < least) {
    context.fail_input(
        index, "expected a number of at least " + std::to_string(least) + ", found " + dim.text());
  }
  return dim;
}

// Input `index` in a kernel; `fallback` if it is omitted.
inline int64_t scalar_of(const KernelCall& call, size_t index, int64_t fallback) {
  return call.has_input(index) ? integer_at(call.inputs[index], 0) : fallback;
}

// The number of bins of the spectrum of a real signal of `length` elements.
inline Dim onesided_length(const Dim& length) { return add(floor_divide(length, 2), 1); }

}  // namespace tessera::ops
