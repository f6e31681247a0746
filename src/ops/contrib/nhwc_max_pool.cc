// NhwcMaxPool: MaxPool of bytes with the channels as the last axis. MaxpoolWithMask: MaxPool whose
// windows end where a mask is zero. pooling/max_pool.cc has MaxPool.
#include <algorithm>
#include <limits>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/pooling/pool.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_nhwc_max_pool(InferContext& context) {
  InferInput input = context.input(0);
  if (input.type.shape && input.type.shape->size() > 2) {
    Shape& shape = *input.type.shape;
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  }
  static const Op kPool = {.name = "NhwcMaxPool", .inputs = {{"x", "T"}}};
  const InferContext pool(kPool, context.node(), std::span(&input, 1));
  std::optional<Shape> output = pooled_shape(pool);
  if (output) std::rotate(output->begin() + 1, output->begin() + 2, output->end());
  context.set_output(0, context.element(0), output);
}

// A byte may alias everything, so the compiler has to be told that nothing here does.
template <class T>
void keep_maxima(T* __restrict maxima, const T* __restrict elements, int64_t count) {
  for (int64_t index = 0; index < count; ++index) {
    maxima[index] = elements[index] > maxima[index] ? elements[index] : maxima[index];
  }
}

template <class T>
void pool_channels_last(const KernelCall& call, const Window& window) {
  const auto dims = call.inputs[0].dims;
  const int64_t channels = dims.back();
  const int64_t input_elements = input_count(window) * channels;
  const int64_t outputs = output_count(window);
  const T* source = call.inputs[0].as<T>().data();
  T* target = call.outputs[0].as<T>().data();
  // All channels of an output together: they are neighbours in memory.
  for_each_output(
      call, window, dims[0], [&](int64_t item, int64_t index, const OutputWindow& place) {
        T* maxima = target + (item * outputs + index) * channels;
        std::fill_n(maxima, channels, std::numeric_limits<T>::lowest());
        visit_offsets(place, [&](int64_t offset) {
          keep_maxima(maxima, source + item * input_elements + offset * channels, channels);
        });
      });
}

void run_nhwc_max_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const std::vector<int64_t>& kernel = call.node.attributes.get_ints("kernel_shape");
  const auto dims = call.inputs[0].dims;
  const Window window =
      known_window(call.node, read_window(call.node, kernel), dims.subspan(1, dims.size() - 2));
  if (call.inputs[0].type == DataType::Int8) return pool_channels_last<int8_t>(call, window);
  pool_channels_last<uint8_t>(call, window);
}

void infer_masked_pool(InferContext& context) {
  // Not required by the schema, which is that of MaxPool otherwise.
  if (!context.node().attributes.has("kernel_shape")) {
    context.fail("expected attribute 'kernel_shape', found none");
  }
  std::optional<Shape> output = pooled_shape(context);
  const Shape* input = context.shape(0);
  const Shape* mask = context.shape(1);
  if (input != nullptr && mask != nullptr) {
    check_rank(context, 1, input->size());
    // The batch and the channels of the mask may be fewer.
    Shape expected = *input;
    std::copy_n(mask->begin(), 2, expected.begin());
    check_shape(context, 1, expected);
    if ((*mask)[0] == Dim(0) || (*mask)[1] == Dim(0)) {
      context.fail_input(1, "expected at least one channel, found [" + text(*mask) + "]");
    }
  }
  context.set_output(0, context.element(0), std::move(output));
}

// The maximum of a window, of which each row ends at the first zero of the mask. Except along a
// single axis, the first element of a channel ends no row: so does ONNX Runtime.
float masked_maximum(const OutputWindow& place, const float* elements, const int32_t* mask,
                     bool has_one_axis) {
  float largest = std::numeric_limits<float>::lowest();
  const auto& [planes, rows, columns] = place.reach;
  const Window& window = place.window;
  for (int64_t plane = 0; plane < planes.count; ++plane) {
    const int64_t first = (planes.begin + plane * window[0].dilation) * window[1].input;
    for (int64_t row = 0; row < rows.count; ++row) {
      int64_t offset =
          (first + rows.begin + row * window[1].dilation) * window[2].input + columns.begin;
      for (int64_t column = 0; column < columns.count; ++column, offset += window[2].dilation) {
        if (mask[offset] == 0 && (offset > 0 || has_one_axis)) break;
        if (elements[offset] > largest) largest = elements[offset];
      }
    }
  }
  return largest;
}

void run_masked_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const TensorView& input = call.inputs[0];
  const TensorView& mask = call.inputs[1];
  const Window window = pool_window(call);
  const int64_t elements = input_count(window);
  const int64_t outputs = output_count(window);
  const int64_t masks = mask.dims[0] * mask.dims[1];
  const bool has_one_axis = input.rank() == 3;
  const float* source = input.as<float>().data();
  const int32_t* flags = mask.as<int32_t>().data();
  float* target = call.outputs[0].as<float>().data();
  for_each_output(call, window, input.dims[0] * input.dims[1],
                  [&](int64_t channel, int64_t index, const OutputWindow& place) {
                    target[channel * outputs + index] =
                        masked_maximum(place, source + channel * elements,
                                       flags + channel % masks * elements, has_one_axis);
                  });
}

Op pool_op_of(const char* name) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                         {"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                         {"pads", AttributeKind::Ints, std::nullopt},
                         {"strides", AttributeKind::Ints, std::nullopt}},
          .flops = pool_flops};
}

}  // namespace

std::vector<Op> nhwc_max_pool_ops() {
  Op pool = pool_op_of("NhwcMaxPool");
  pool.inputs = {{"x", "T"}};
  pool.outputs = {{"y", "T"}};
  pool.type_variables = {{"T", {DataType::Int8, DataType::UInt8}}};
  pool.attributes.push_back({"ceil_mode", AttributeKind::Int, int64_t{0}});
  pool.attributes.push_back({"dilations", AttributeKind::Ints, std::nullopt});
  pool.infer = infer_nhwc_max_pool;
  pool.kernel = run_nhwc_max_pool;
  Op masked = pool_op_of("MaxpoolWithMask");
  masked.inputs = {{"X", "T"}, {"M", "tensor(int32)"}};
  masked.outputs = {{"Y", "T"}};
  masked.type_variables = {{"T", {DataType::Float32}}, {"tensor(int32)", {DataType::Int32}}};
  // It says how MaxPool numbers elements; there are no numbers here.
  masked.attributes.push_back({"storage_order", AttributeKind::Int, int64_t{0}});
  std::ranges::find(masked.attributes, "kernel_shape", &AttributeSchema::name)->is_required = false;
  masked.infer = infer_masked_pool;
  masked.kernel = run_masked_pool;
  return {pool, masked};
}

}  // namespace tessera::ops
