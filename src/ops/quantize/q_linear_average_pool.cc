// QLinearAveragePool and QLinearGlobalAveragePool of com.microsoft: means of bytes, whose channels
// may be the last axis.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <array>
#include <utility>

#include "ops/domains.h"
#include "ops/pooling/pool.h"
#include "ops/quantize/channels_last.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

void infer_pool_of_bytes(InferContext& context) {
  check_tensor_scale(context, 1, 2);
  check_tensor_scale(context, 3, 4);
  const bool is_moved = is_channels_last(context.node());
  std::optional<Shape> input;
  if (context.shape(0) != nullptr) {
    input = is_moved ? channels_moved_first(*context.shape(0)) : *context.shape(0);
  }
  std::optional<Shape> shape = pooled_shape(context, input ? &*input : nullptr);
  if (shape && is_moved) shape = channels_moved_last(*std::move(shape));
  context.set_output(0, context.element(0), std::move(shape));
}

void infer_global_pool_of_bytes(InferContext& context) {
  check_tensor_scale(context, 1, 2);
  check_tensor_scale(context, 3, 4);
  context.set_output(0, context.element(0));
  const Shape* const input = context.shape(0);
  if (input == nullptr) return;
  if (input->size() < 2) {
    context.fail_input(0, "expected batch and channels, found [" + text(*input) + "]");
  }
  Shape output(input->size(), Dim(1));
  const size_t channels = is_channels_last(context.node()) ? input->size() - 1 : 1;
  output[0] = (*input)[0];
  output[channels] = (*input)[channels];
  context.set_output(0, context.element(0), std::move(output));
}

void store_means(const KernelCall& call, std::span<const double> means) {
  const double scale = tensor_scale_of(call, 1, 2).scale;
  const TensorScale to = tensor_scale_of(call, 3, 4);
  visit_byte(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::transform(means, call.outputs[0].as<T>().begin(),
                           [&](double mean) { return to.template integer_of<T>(mean * scale); });
  });
}

void run_pool_of_bytes(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  std::pmr::vector<double> input = centred(call, 0, 2, std::nullopt);
  std::pmr::vector<double> means(static_cast<size_t>(call.outputs[0].elements), &call.scratch);
  const auto average = [&](std::span<const int64_t> dims, std::span<const int64_t> result_dims) {
    const std::array inputs = {view_of(dims, std::as_const(input))};
    const std::array outputs = {view_of(result_dims, means)};
    run_average_pool({call.node, inputs, outputs, call.pool, call.scratch});
  };
  if (!is_channels_last(call.node)) {
    average(call.inputs[0].dims, call.outputs[0].dims);
    return store_means(call, means);
  }
  const auto dims = channels_moved_first(call.inputs[0].dims, call.scratch);
  const auto result_dims = channels_moved_first(call.outputs[0].dims, call.scratch);
  input = elements_moved_first(input, dims, call.scratch);
  average(dims, result_dims);
  store_means(call, elements_moved_last(means, result_dims, call.scratch));
}

// Sets `means` to those of the channels of one item of the batch. Sums of bytes are exact.
template <class T>
void average_channels(const T* input, int64_t zero_point, int64_t channels, int64_t length,
                      bool is_last, double* means) {
  if (is_last) {
    std::fill_n(means, channels, 0.0);
    for (int64_t index = 0; index < length; ++index) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        means[channel] += input[index * channels + channel];
      }
    }
  } else {
    for (int64_t channel = 0; channel < channels; ++channel) {
      int64_t sum = 0;
      for (int64_t index = 0; index < length; ++index) sum += input[channel * length + index];
      means[channel] = static_cast<double>(sum);
    }
  }
  const auto count = static_cast<double>(length);
  for (int64_t channel = 0; channel < channels; ++channel) {
    means[channel] = (means[channel] - count * static_cast<double>(zero_point)) / count;
  }
}

void run_global_pool_of_bytes(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const TensorView& input = call.inputs[0];
  const bool is_last = is_channels_last(call.node);
  const int64_t batch = input.dims[0];
  const int64_t channels = is_last ? input.dims.back() : input.dims[1];
  const int64_t length = input.elements / (batch * channels);
  std::pmr::vector<double> means(static_cast<size_t>(batch * channels), &call.scratch);
  const int64_t zero_point = zero_point_of(call, 2);
  visit_byte(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const source = input.as<T>().data();
    call.pool.parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        average_channels(source + item * channels * length, zero_point, channels, length, is_last,
                         means.data() + item * channels);
      }
    });
  });
  store_means(call, means);
}

Op pool_of_bytes_op(const char* name, Arity zero_points) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"X", "T"},
                     {"x_scale", "TS"},
                     {"x_zero_point", "T", zero_points},
                     {"y_scale", "TS"},
                     {"y_zero_point", "T", zero_points}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kByteTypes}, {"TS", TypeSet{DataType::Float32}}},
          .attributes = {{"channels_last", AttributeKind::Int, int64_t{0}}}};
}

}  // namespace

std::vector<Op> q_linear_average_pool_ops() {
  Op average = pool_of_bytes_op("QLinearAveragePool", Arity::Optional);
  const std::vector<AttributeSchema> window = {
      {"auto_pad", AttributeKind::String, "NOTSET"},
      {"ceil_mode", AttributeKind::Int, int64_t{0}},
      {"count_include_pad", AttributeKind::Int, int64_t{0}},
      {"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
      {"pads", AttributeKind::Ints, std::nullopt},
      {"strides", AttributeKind::Ints, std::nullopt}};
  average.attributes.insert(average.attributes.end(), window.begin(), window.end());
  average.infer = infer_pool_of_bytes;
  average.flops = pool_flops;
  average.kernel = run_pool_of_bytes;
  Op global = pool_of_bytes_op("QLinearGlobalAveragePool", Arity::Required);
  global.infer = infer_global_pool_of_bytes;
  global.flops = flops_per_input;
  global.kernel = run_global_pool_of_bytes;
  return {std::move(average), std::move(global)};
}

}  // namespace tessera::ops
