#include "ops/indexing/element_indices.h"

#include <string>

namespace tessera::ops {

void check_element_indices(const InferContext& context, const Shape& data, const Shape& indices) {
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(data.size())));
  if (indices.size() != data.size()) {
    context.fail_input(1, "expected the rank of the data, " + std::to_string(data.size()) +
                              ", found shape " + text(indices));
  }
  for (size_t dimension = 0; dimension < data.size(); ++dimension) {
    const Dim& bound = data[dimension];
    const Dim& dim = indices[dimension];
    if (dimension != axis && bound.is_known() && dim.is_known() && dim.value() > bound.value()) {
      context.fail_input(1, "expected at most the data's dimensions " + text(data) +
                                " outside axis " + std::to_string(axis) + ", found shape " +
                                text(indices));
    }
  }
}

IndexedAxis indexed_axis(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  int64_t given = call.node.attributes.get_int("axis");
  if (given < 0) given += data.rank();
  const auto axis = static_cast<size_t>(given);
  IndexedAxis result = {.dim = data.dims[axis], .view = dense_view(data.dims, &call.scratch)};
  result.stride = result.view.strides[axis];
  result.view.dims.assign(indices.dims.begin(), indices.dims.end());
  result.view.strides[axis] = 0;
  return result;
}

}  // namespace tessera::ops
