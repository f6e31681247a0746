// Transpose: permutes the dimensions; reverses them by default.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

std::pmr::vector<int64_t> order_of(
    const Node& node, size_t rank,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  std::pmr::vector<int64_t> order(memory);
  if (const auto* given = node.attributes.find_ints("perm")) {
    order.assign(given->begin(), given->end());
  } else {
    for (size_t axis = rank; axis-- > 0;) order.push_back(static_cast<int64_t>(axis));
  }
  return order;
}

StridedView transposed_view(std::span<const int64_t> dims, std::span<const int64_t> order,
                            std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const std::pmr::vector<int64_t> strides = dense_strides(dims, memory);
  StridedView view(memory);
  for (const int64_t axis : order) {
    view.dims.push_back(dims[static_cast<size_t>(axis)]);
    view.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return view;
}

void check_order(const InferContext& context, std::span<const int64_t> order, size_t rank) {
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
  const std::pmr::vector<int64_t> order = order_of(context.node(), shape->size());
  check_order(context, order, shape->size());
  Shape transposed;
  for (const int64_t axis : order) transposed.push_back((*shape)[static_cast<size_t>(axis)]);
  context.set_output(0, context.element(0), transposed);
  if (const auto* elements = propagated_elements(context, 0)) {
    context.set_elements(0, view_elements(transposed_view(dims_from(*shape), order), *elements));
  }
}

void run_transpose(const KernelCall& call) {
  const auto dims = call.inputs[0].dims;
  const std::pmr::vector<int64_t> order = order_of(call.node, dims.size(), &call.scratch);
  copy_view(call, transposed_view(dims, order, &call.scratch));
}

}  // namespace

std::vector<Op> transpose_ops() {
  return {{.name = "Transpose",
           .versions = {1, 13, 21, 23, 24, 25},
           .inputs = {{"data", "T"}},
           .outputs = {{"transposed", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings, small_types_since(21)}},
           .attributes = {{"perm", AttributeKind::Ints, std::nullopt}},
           .traits = kBoundsMagnitude,
           .infer = infer_transpose,
           .flops = no_flops,
           .kernel = run_transpose}};
}

}  // namespace tessera::ops
