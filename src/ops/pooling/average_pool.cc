// AveragePool. Padding never contributes to a sum; count_include_pad says whether it contributes to
// the count. window.h has the geometry.
#include <algorithm>

#include "ops/compensated_sum.h"
#include "ops/convert_element.h"
#include "ops/op.h"
#include "ops/pooling/pool.h"

namespace tessera::ops {
namespace {

void infer_average_pool(InferContext& context) {
  context.set_output(0, context.element(0), pooled_shape(context));
}

// The number of taps that count along one axis: those inside the input, or inside the padded input.
// A window may leave the padded input if the output length is rounded up.
double counted_taps(const OutputWindow& place, size_t index, bool counts_padding) {
  if (!counts_padding) return static_cast<double>(place.reach[index].count);
  const WindowAxis& axis = place.window[index];
  const int64_t left =
      axis.input + axis.pad_begin + axis.pad_end - place.output[index] * axis.stride;
  return static_cast<double>(std::min(axis.kernel, (left - 1) / axis.dilation + 1));
}

template <class T>
double window_sum(const T* channel, const OutputWindow& place) {
  CompensatedSum sum;
  visit_offsets(place, [&](int64_t offset) { sum.add(to_double(channel[offset])); });
  return sum.value();
}

}  // namespace

void run_average_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const TensorView& input = call.inputs[0];
  const Window window = pool_window(call);
  const int64_t* include = call.node.attributes.find_int("count_include_pad");
  const bool counts_padding = include != nullptr && *include != 0;
  const int64_t outputs = output_count(window);
  const int64_t channel_elements = input_count(window);
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    for_each_output(call, window, input.dims[0] * input.dims[1],
                    [&](int64_t channel, int64_t index, const OutputWindow& place) {
                      double count = 1;
                      for (size_t axis = 0; axis < window.size(); ++axis) {
                        count *= counted_taps(place, axis, counts_padding);
                      }
                      const double sum = window_sum(source + channel * channel_elements, place);
                      // A window that lies in the padding only has nothing to average.
                      target[channel * outputs + index] =
                          from_double<T>(count == 0 ? 0.0 : sum / count);
                    });
  });
}

std::vector<Op> average_pool_ops() {
  return {{.name = "AveragePool",
           .versions = {1, 7, 10, 11, 19, 22},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"auto_pad", AttributeKind::String, "NOTSET"},
                          {"ceil_mode", AttributeKind::Int, int64_t{0}, 10},
                          {"count_include_pad", AttributeKind::Int, int64_t{0}, 7},
                          {"dilations", AttributeKind::Ints, std::nullopt, 19},
                          {"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .traits = kBoundsMagnitude,
           .infer = infer_average_pool,
           .flops = pool_flops,
           .kernel = run_average_pool}};
}

}  // namespace tessera::ops
