// MaxPool; its optional second output has the indices of the maxima. window.h has the geometry.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op.h"
#include "ops/pooling/pool.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_max_pool(InferContext& context) {
  std::optional<Shape> shape = pooled_shape(context);
  context.set_output(0, context.element(0), shape);
  context.set_output(1, DataType::Int64, std::move(shape));
}

// NaN counts as larger than everything, so that it propagates.
template <class T>
bool is_larger(compute_t<T> candidate, compute_t<T> best) {
  if constexpr (std::is_floating_point_v<compute_t<T>>) {
    if (std::isnan(best)) return false;
    if (std::isnan(candidate)) return true;
  }
  return candidate > best;
}

// The first index within the channel of the maximum among the taps inside the input; -1 if the
// whole window lies in the padding.
template <class T>
int64_t place_of_largest(const T* channel, const OutputWindow& place) {
  int64_t largest = -1;
  compute_t<T> best = 0;
  visit_offsets(place, [&](int64_t offset) {
    const auto value = static_cast<compute_t<T>>(channel[offset]);
    if (largest >= 0 && !is_larger<T>(value, best)) return;
    best = value;
    largest = offset;
  });
  return largest;
}

// storage_order 1 of ONNX: the first spatial axis varies fastest.
int64_t column_major_offset(const Window& window, int64_t offset) {
  const int64_t column = offset % window[2].input;
  const int64_t row = offset / window[2].input % window[1].input;
  const int64_t plane = offset / window[2].input / window[1].input;
  return plane + window[0].input * (row + window[1].input * column);
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::lowest();
  else
    return T(-std::numeric_limits<compute_t<T>>::infinity());
}

void run_max_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const TensorView& input = call.inputs[0];
  const Window window = pool_window(call);
  const int64_t outputs = output_count(window);
  const int64_t channel_elements = input_count(window);
  const int64_t* order = call.node.attributes.find_int("storage_order");
  const bool is_column_major = order != nullptr && *order != 0;
  int64_t* indices = call.has_output(1) ? call.outputs[1].as<int64_t>().data() : nullptr;
  const auto pool_elements = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    for_each_output(call, window, input.dims[0] * input.dims[1],
                    [&](int64_t channel, int64_t index, const OutputWindow& place) {
                      const T* elements = source + channel * channel_elements;
                      const int64_t offset = place_of_largest(elements, place);
                      const int64_t position = channel * outputs + index;
                      target[position] = offset < 0 ? lowest<T>() : elements[offset];
                      if (indices == nullptr) return;
                      // For a window that lies in the padding only, the index is that of the first
                      // element.
                      const bool is_moved = is_column_major && offset > 0;
                      indices[position] = channel * channel_elements +
                                          (is_moved ? column_major_offset(window, offset)
                                                    : std::max<int64_t>(0, offset));
                    });
  };
  switch (input.type) {
    case DataType::Int8:
      return pool_elements(TypeTag<int8_t>{});
    case DataType::UInt8:
      return pool_elements(TypeTag<uint8_t>{});
    default:
      return visit_floating(input.type, pool_elements);
  }
}

}  // namespace

std::vector<Op> max_pool_ops() {
  constexpr TypeSet kByteTypes = {DataType::Int8, DataType::UInt8};
  return {{.name = "MaxPool",
           .versions = {1, 8, 10, 11, 12, 22},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}, {"Indices", "I", Arity::Optional, 8}},
           .type_variables = {{"T", kFloatTypes | kByteTypes}, {"I", kInt64Type}},
           .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                          {"ceil_mode", AttributeKind::Int, int64_t{0}, 10},
                          {"dilations", AttributeKind::Ints, std::nullopt, 10},
                          {"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"storage_order", AttributeKind::Int, int64_t{0}, 8},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .traits = kBoundsMagnitude,
           .infer = infer_max_pool,
           .flops = pool_flops,
           .kernel = run_max_pool}};
}

}  // namespace tessera::ops
