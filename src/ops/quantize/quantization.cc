#include "ops/quantize/quantization.h"

#include <string>

#include "ops/check_shape.h"
#include "ops/convert_elements.h"

namespace tessera::ops {
namespace {

int64_t block_of(const Node& node) {
  const int64_t* const block = node.attributes.find_int("block_size");
  return block == nullptr ? 0 : *block;
}

int64_t axis_of(const Node& node) {
  const int64_t* const axis = node.attributes.find_int("axis");
  return axis == nullptr ? 1 : *axis;  // before version 13 there is one scale
}

// Before version 13, and for tensors that fit any axis, a list of one scale is one scale.
bool is_one(std::span<const int64_t> dims) { return element_count(dims) == 1 && dims.size() < 2; }

void check_blocks(const InferContext& context, const Shape& shape, const Shape& scales, size_t axis,
                  int64_t block) {
  Shape expected = shape;
  if (expected[axis].is_known()) {
    const int64_t length = expected[axis].value();
    expected[axis] = length / block + (length % block == 0 ? 0 : 1);
  } else {
    expected[axis] = scales.size() == shape.size() ? scales[axis] : expected[axis];
  }
  check_shape(context, 1, expected);
}

}  // namespace

ScaleLoop::ScaleLoop(std::span<const int64_t> dims, std::span<const int64_t> scale_dims,
                     int64_t axis, int64_t block)
    : is_single_(is_one(scale_dims)) {
  if (is_single_) return;
  const auto at = static_cast<size_t>(axis);
  length_ = dims[at];
  inner_ = element_count(dims.subspan(at + 1));
  block_ = block;
  if (block > 0) blocks_ = scale_dims[at];
}

std::vector<AddedTypes> small_quantized_types() {
  return {{19, kFloat8Types}, {21, kInt4Types}, {23, kFloat4Type}, {25, kInt2Types}};
}

std::pmr::vector<double> numbers_of(const TensorView& tensor, std::pmr::memory_resource& memory) {
  std::pmr::vector<double> numbers(static_cast<size_t>(tensor.elements), &memory);
  if (tensor.is_empty()) return numbers;
  convert_elements(tensor.type, tensor.data, DataType::Float64, numbers.data(), tensor.elements);
  return numbers;
}

IntegerRange range_of(DataType type) {
  const auto bits = static_cast<int>(element_bits(type));
  const bool is_signed =
      is_signed_integer(type) || type == DataType::Int4 || type == DataType::Int2;
  if (!is_signed) return {0, (1 << bits) - 1};
  return {-(1 << (bits - 1)), (1 << (bits - 1)) - 1};
}

void check_scales(const InferContext& context) {
  const Node& node = context.node();
  const int64_t block = block_of(node);
  if (block < 0) {
    context.fail("attribute 'block_size': expected at least 0, found " + std::to_string(block));
  }
  const Shape* scales = context.shape(1);
  const auto is_single = [](const Shape* given) {
    return given != nullptr && is_known(*given) && is_one(dims_from(*given));
  };
  const bool has_zeros = context.has_input(2) && scales != nullptr;
  if (has_zeros && !(is_single(scales) && is_single(context.shape(2)))) {
    check_shape(context, 2, *scales);
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr || scales == nullptr) return;
  if (is_single(scales)) return;
  const auto rank = static_cast<int64_t>(shape->size());
  const auto axis = static_cast<size_t>(context.normalized_axis(axis_of(node), rank));
  if (block > 0) return check_blocks(context, *shape, *scales, axis, block);
  check_shape(context, 1, Shape{(*shape)[axis]});
}

ScaleLoop scales_of(const KernelCall& call) {
  const int64_t rank = call.inputs[0].rank();
  const int64_t axis = axis_of(call.node);
  return {call.inputs[0].dims, call.inputs[1].dims, axis < 0 ? axis + rank : axis,
          block_of(call.node)};
}

void check_one_element(const InferContext& context, size_t index) {
  const Shape* const given = context.has_input(index) ? context.shape(index) : nullptr;
  if (given == nullptr || given->empty()) return;
  const Dim& length = given->front();
  if (given->size() == 1 && (!length.is_known() || length == Dim(1))) return;
  context.fail_input(index, "expected one element, found shape [" + text(*given) + "]");
}

void check_tensor_scale(const InferContext& context, size_t scale, size_t zero_point) {
  check_one_element(context, scale);
  check_one_element(context, zero_point);
}

int64_t zero_point_of(const KernelCall& call, size_t zero_point) {
  int64_t zero = 0;
  if (!call.has_input(zero_point)) return zero;
  visit_byte(call.inputs[zero_point].type, [&](auto tag) {
    zero = call.inputs[zero_point].as<typename decltype(tag)::type>()[0];
  });
  return zero;
}

TensorScale tensor_scale_of(const KernelCall& call, size_t scale, size_t zero_point) {
  return {call.inputs[scale].as<float>()[0], zero_point_of(call, zero_point)};
}

TensorScale range_scale(std::span<const float> numbers) {
  // The range contains 0, so that 0 is exact.
  float lowest = 0;
  float highest = 0;
  for (const float number : numbers) {
    lowest = std::min(lowest, number);
    highest = std::max(highest, number);
  }
  constexpr float kSteps = 255;
  // Zeros alone have any scale.
  const float scale = lowest == highest ? 1 : (highest - lowest) / kSteps;
  return {scale, quantized<uint8_t>(-lowest / scale, 0)};
}

}  // namespace tessera::ops
