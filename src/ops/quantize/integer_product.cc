#include "ops/quantize/integer_product.h"

#include <string>
#include <utility>

#include "base/tensor/small_types.h"
#include "ops/broadcast.h"
#include "ops/convert_element.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {

void check_per_axis(const InferContext& context, size_t zeros, const Shape* shape,
                    std::optional<int64_t> axis) {
  if (!context.has_input(zeros)) return;
  const Shape* const given = context.shape(zeros);
  if (given == nullptr || shape == nullptr || given->empty()) return;
  const bool may_be_one = given->size() == 1 && (!given->front().is_known() || given->front() == 1);
  if (may_be_one) return;
  const auto rank = static_cast<int64_t>(shape->size());
  const bool has_axis = axis && (*axis < 0 ? *axis + rank >= 0 : *axis < rank);
  if (given->size() == 1 && has_axis) {
    const Dim& length = (*shape)[static_cast<size_t>(*axis < 0 ? *axis + rank : *axis)];
    if (!length.is_known() || length == given->front()) return;
    context.fail_input(zeros,
                       "expected one element or " + length.text() + ", found " + text(*given));
  }
  if (given->size() > 1 && axis && *axis < 0 && can_broadcast_to(*given, *shape)) {
    // Along the other axis of the matrix, products are summed.
    const Dim& other = (*given)[given->size() - (*axis == -1 ? 2 : 1)];
    if (!other.is_known() || other == 1) return;
  }
  context.fail_input(
      zeros, "expected one element" +
                 (axis ? " or a shape that can be broadcast to " + text(*shape) : std::string()) +
                 ", found " + text(*given));
}

std::pmr::vector<int64_t> per_axis_dims(const TensorView& input, int64_t rank,
                                        std::optional<int64_t> axis,
                                        std::pmr::memory_resource& memory) {
  std::pmr::vector<int64_t> dims(input.dims.begin(), input.dims.end(), &memory);
  if (dims.size() != 1) return dims;
  if (dims[0] == 1 || !axis) {
    dims.clear();
    return dims;
  }
  const int64_t at = *axis < 0 ? *axis + rank : *axis;
  dims.resize(static_cast<size_t>(rank - at), 1);
  return dims;
}

std::pmr::vector<double> centred(const KernelCall& call, size_t input, size_t zeros,
                                 std::optional<int64_t> axis) {
  const TensorView& bytes = call.inputs[input];
  std::pmr::vector<double> numbers = numbers_of(bytes, call.scratch);
  if (!call.has_input(zeros)) return numbers;
  const std::pmr::vector<double> points = numbers_of(call.inputs[zeros], call.scratch);
  const std::pmr::vector<int64_t> dims =
      per_axis_dims(call.inputs[zeros], bytes.rank(), axis, call.scratch);
  const BroadcastLoop loop(bytes.dims, {dims}, &call.scratch);
  loop.for_each_run(0, bytes.elements, [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; index < run.length; ++index) {
      numbers[static_cast<size_t>(run.output + index)] -=
          points[static_cast<size_t>(run.inputs[0] + index * loop.step(0))];
    }
  });
  return numbers;
}

TensorView view_of(std::span<const int64_t> dims, const std::pmr::vector<double>& elements) {
  return {DataType::Float64, dims, elements.data(), std::ssize(elements)};
}

MutableTensorView view_of(std::span<const int64_t> dims, std::pmr::vector<double>& elements) {
  return {DataType::Float64, dims, elements.data(), std::ssize(elements)};
}

void store_sums(const KernelCall& call, std::span<const double> sums) {
  std::ranges::transform(sums, call.outputs[0].as<int32_t>().begin(), [](double sum) {
    return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
  });
}

void multiply_by_scales(const KernelCall& call, std::span<double> numbers,
                        std::span<const int64_t> dims, size_t scales, std::optional<int64_t> axis) {
  const std::pmr::vector<double> factors = to_doubles(call.inputs[scales], call.scratch);
  const std::pmr::vector<int64_t> factor_dims =
      per_axis_dims(call.inputs[scales], std::ssize(dims), axis, call.scratch);
  const BroadcastLoop loop(dims, {factor_dims}, &call.scratch);
  loop.for_each_run(0, std::ssize(numbers), [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; index < run.length; ++index) {
      numbers[static_cast<size_t>(run.output + index)] *=
          factors[static_cast<size_t>(run.inputs[0] + index * loop.step(0))];
    }
  });
}

void store_requantized(const KernelCall& call, std::span<const double> sums,
                       const Requantization& form) {
  const MutableTensorView& output = call.outputs[0];
  const auto scales = [&](size_t input) { return to_doubles(call.inputs[input], call.scratch); };
  const std::pmr::vector<double> left = scales(form.left_scale);
  const std::pmr::vector<double> right = scales(form.right_scale);
  const auto scale = static_cast<float>(scales(form.scale)[0]);
  const auto rank = static_cast<int64_t>(form.dims.size());
  const std::pmr::vector<int64_t> left_dims =
      per_axis_dims(call.inputs[form.left_scale], rank, form.left_axis, call.scratch);
  const std::pmr::vector<int64_t> right_dims =
      per_axis_dims(call.inputs[form.right_scale], rank, form.right_axis, call.scratch);
  const BroadcastLoop loop(form.dims, {left_dims, right_dims}, &call.scratch);
  const double zero = numbers_of(call.inputs[form.zero_point], call.scratch)[0];
  visit_byte(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<T> results = output.as<T>();
    const auto result_of = [&](double number) {
      if (!is_small_float(output.type)) return quantized<T>(number, static_cast<T>(zero));
      return static_cast<T>(small_float_bits(output.type, zero == 0 ? number : number + zero));
    };
    loop.for_each_run(0, output.elements, [&](const BroadcastLoop::Run& run) {
      for (int64_t index = 0; index < run.length; ++index) {
        const double one = left[static_cast<size_t>(run.inputs[0] + index * loop.step(0))];
        const double other = right[static_cast<size_t>(run.inputs[1] + index * loop.step(1))];
        const float factor = static_cast<float>(one) * static_cast<float>(other) / scale;
        const auto at = static_cast<size_t>(run.output + index);
        results[at] = result_of(sums[at] * factor);
      }
    });
  });
}

}  // namespace tessera::ops
