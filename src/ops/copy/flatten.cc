// Flatten: reshapes to a matrix whose rows are the dimensions before `axis`.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

void infer_flatten(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    return context.set_output(0, context.element(0), unknown_shape(context, 0, 2));
  }
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = context.node().attributes.get_int("axis");
  // Unlike in other ops, the axis may equal the rank.
  if (axis != rank) axis = context.normalized_axis(axis, rank);
  const auto middle = shape->begin() + axis;
  context.set_output(0, context.element(0),
                     Shape{product({shape->begin(), middle}), product({middle, shape->end()})});
  if (const auto* elements = propagated_elements(context, 0)) context.set_elements(0, *elements);
}

}  // namespace

std::vector<Op> flatten_ops() {
  return {{.name = "Flatten",
           .versions = {1, 9, 11, 13, 21, 23, 24, 25},
           .inputs = {{"input", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings, small_types_since(21)}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{1}}},
           .traits = kView,
           .infer = infer_flatten,
           .flops = no_flops,
           .kernel = run_view}};
}

}  // namespace tessera::ops
