#include "ops/contrib/contrib.h"

namespace tessera::ops {

void check_rank(const InferContext& context, size_t index, size_t rank) {
  const Shape* shape = context.has_input(index) ? context.shape(index) : nullptr;
  if (shape == nullptr || shape->size() == rank) return;
  context.fail_input(index,
                     "expected rank " + std::to_string(rank) + ", found [" + text(*shape) + "]");
}

void check_columns(const InferContext& context, size_t index, const Shape& shape) {
  if (!context.has_input(index)) return;
  if (shape.empty()) context.fail_input(index, "expected an input 0 with columns, found a scalar");
  check_shape(context, index, {shape.back()});
}

}  // namespace tessera::ops
