#include "ops/pooling/pool.h"

namespace tessera::ops {

std::optional<Shape> pooled_shape(const InferContext& context) {
  return pooled_shape(context, context.shape(0));
}

std::optional<Shape> pooled_shape(const InferContext& context, const Shape* input) {
  const Node& node = context.node();
  const std::vector<int64_t>& kernel = node.attributes.get_ints("kernel_shape");
  const WindowAttributes window = read_window(node, kernel);
  if (input == nullptr) return std::nullopt;
  check_spatial_rank(node, input->size());
  if (kernel.size() != input->size() - 2) {
    context.fail("expected a 'kernel_shape' of " + std::to_string(input->size() - 2) +
                 " numbers for input 'X' (" + text(*input) + "), found " +
                 std::to_string(kernel.size()));
  }
  Shape output = {(*input)[0], (*input)[1]};
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    output.push_back(window_output(node, window, axis, (*input)[axis + 2]));
  }
  return output;
}

Window pool_window(const KernelCall& call) {
  const std::vector<int64_t>& kernel = call.node.attributes.get_ints("kernel_shape");
  return known_window(call.node, read_window(call.node, kernel), call.inputs[0].dims.subspan(2));
}

int64_t pool_flops(const Node& node, std::span<const Type>, std::span<const Type> outputs) {
  Dim work = 1;
  for (const Dim& dim : *outputs[0].shape) work = multiply(work, dim);
  for (const int64_t taps : node.attributes.get_ints("kernel_shape")) work = multiply(work, taps);
  return work.value();
}

WindowReaches::WindowReaches(const Window& window, std::pmr::memory_resource* memory)
    : window_(window),
      reaches_{std::pmr::vector<AxisReach>(memory), std::pmr::vector<AxisReach>(memory),
               std::pmr::vector<AxisReach>(memory)} {
  for (size_t index = 0; index < kMaxSpatialAxes; ++index) {
    const WindowAxis& axis = window[index];
    reaches_[index].reserve(static_cast<size_t>(axis.output));
    for (int64_t output = 0; output < axis.output; ++output) {
      const TapRange taps = taps_inside(axis, output);
      reaches_[index].push_back(
          {output * axis.stride + taps.begin * axis.dilation - axis.pad_begin, taps.count()});
    }
  }
}

}  // namespace tessera::ops
