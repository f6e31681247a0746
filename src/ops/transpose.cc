// Transpose: the dimensions in another order; reversed where none is given.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

std::vector<int64_t> order_of(const Node& node, size_t rank) {
  if (const auto* order = node.attributes.find_ints("perm")) return *order;
  std::vector<int64_t> reversed;
  for (size_t axis = rank; axis-- > 0;) reversed.push_back(static_cast<int64_t>(axis));
  return reversed;
}

StridedView view_of(std::span<const int64_t> dims, const std::vector<int64_t>& order) {
  const std::vector<int64_t> strides = dense_strides(dims);
  StridedView view;
  for (const int64_t axis : order) {
    view.dims.push_back(dims[static_cast<size_t>(axis)]);
    view.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return view;
}

void check_order(const InferContext& context, const std::vector<int64_t>& order, size_t rank) {
  std::vector<bool> is_named(rank, false);
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || is_named[static_cast<size_t>(axis)]) {
      context.fail("expected perm to name each of " + std::to_string(rank) +
                   " dimensions once, found " + std::to_string(axis));
    }
    is_named[static_cast<size_t>(axis)] = true;
  }
  if (order.size() != rank) {
    context.fail("expected a perm of " + std::to_string(rank) + " dimensions, found " +
                 std::to_string(order.size()));
  }
}

void infer_transpose(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    const auto* order = context.node().attributes.find_ints("perm");
    return context.set_output(
        0, context.element(0),
        order ? unknown_shape(context, 0, static_cast<int64_t>(order->size())) : std::nullopt);
  }
  const std::vector<int64_t> order = order_of(context.node(), shape->size());
  check_order(context, order, shape->size());
  Shape transposed;
  for (const int64_t axis : order) transposed.push_back((*shape)[static_cast<size_t>(axis)]);
  context.set_output(0, context.element(0), transposed);
  if (const auto* elements = followed_elements(context, 0)) {
    context.set_elements(0, view_elements(view_of(dims_from(*shape), order), *elements));
  }
}

void run_transpose(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  copy_view(view_of(input.dims, order_of(call.node, input.dims.size())), input.type, input.data,
            call.outputs[0].data, call.pool);
}

}  // namespace

std::vector<Op> transpose_ops() {
  return {{.name = "Transpose",
           .versions = {1, 13, 21, 23, 24, 25},
           .inputs = {{"data", "T"}},
           .outputs = {{"transposed", "T"}},
           .type_variables = {{"T", kAllTypes}},
           .attributes = {{"perm", AttributeKind::Ints, std::nullopt}},
           .infer = infer_transpose,
           .flops = no_flops,
           .kernel = run_transpose}};
}

}  // namespace tessera::ops
