// CausalConvWithState: a depthwise convolution over the present and past positions of sequences,
// with the last positions as the state of the next call.
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/attention/heads.h"
#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_causal_conv(InferContext& context) {
  const std::string& activation = context.node().attributes.get_string("activation");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    context.fail("attribute 'activation': expected 'none', 'silu' or 'swish', found '" +
                 activation + "'");
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
  context.set_output(1, context.element(0));
  const Shape* input = shape_of_rank(context, 0, 3, "batch, channels, length");
  const Shape* weight = shape_of_rank(context, 1, 3, "channels, 1, kernel size");
  if (input == nullptr || weight == nullptr) return;
  const Dim channels = merged((*input)[1], (*weight)[0]);
  const Dim& kernel = (*weight)[2];
  if (kernel == Dim(0)) context.fail_input(1, "expected a kernel size of at least 1, found 0");
  check_shape(context, 1, {channels, 1, kernel});
  if (context.has_input(2)) check_shape(context, 2, {channels});
  const Shape state = {(*input)[0], channels, subtract(kernel, 1)};
  if (context.has_input(3)) check_shape(context, 3, state);
  context.set_output(0, context.element(0), Shape{(*input)[0], channels, (*input)[2]});
  context.set_output(1, context.element(0), state);
}

// The convolution of one channel of one sequence.
struct CausalChannel {
  std::span<const double> weights;
  double bias = 0;
  bool has_activation = false;
};

// `padded` has the state and then the input. The results replace its first elements, which no later
// result needs.
void convolve_channel(const CausalChannel& channel, std::span<double> padded) {
  const size_t taps = channel.weights.size();
  for (size_t place = 0; place + taps <= padded.size(); ++place) {
    double sum = 0;
    for (size_t tap = 0; tap < taps; ++tap) sum += channel.weights[tap] * padded[place + tap];
    sum += channel.bias;
    padded[place] = channel.has_activation ? sum / (1 + std::exp(-sum)) : sum;
  }
}

// The rows of a tensor: vectors of the last axis.
HeadView rows_of_tensor(const TensorView& tensor) {
  return {tensor.type, tensor.data, 0, 0, tensor.dims.back()};
}

MutableHeadView rows_of_tensor(const MutableTensorView& tensor) {
  return {tensor.type, tensor.data, 0, 0, tensor.dims.back()};
}

void run_causal_conv(const KernelCall& call) {
  if (!has_output_elements(call)) return;
  const TensorView& input = call.inputs[0];
  const int64_t channels = input.dims[1];
  const int64_t length = input.dims[2];
  const int64_t kernel = call.inputs[1].dims[2];
  const int64_t padded_length = length + kernel - 1;
  const std::pmr::vector<double> weights = to_doubles(call.inputs[1], call.scratch);
  std::pmr::vector<double> biases(static_cast<size_t>(channels), &call.scratch);
  if (call.has_input(2)) biases = to_doubles(call.inputs[2], call.scratch);
  const bool has_activation = call.node.attributes.get_string("activation") != "none";
  const int64_t rows = input.dims[0] * channels;
  const int64_t grain = kElementGrain / (length * kernel + 1) + 1;
  const int64_t slots = slot_count(call.pool, rows, grain);
  std::pmr::vector<double> buffers(static_cast<size_t>(slots * padded_length), &call.scratch);
  parallel_for_in_slots(call.pool, rows, grain, [&](int64_t slot, int64_t begin, int64_t end) {
    const std::span padded(buffers.data() + slot * padded_length,
                           static_cast<size_t>(padded_length));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t channel = row % channels;
      std::fill_n(padded.begin(), kernel - 1, 0.0);
      if (call.has_input(3)) {
        rows_of_tensor(call.inputs[3]).read(0, 0, row, 0, kernel - 1, padded.data());
      }
      rows_of_tensor(input).read(0, 0, row, 0, length, padded.data() + kernel - 1);
      if (call.has_output(1)) {
        rows_of_tensor(call.outputs[1]).write(0, 0, row, 0, kernel - 1, padded.data() + length);
      }
      const std::span taps(weights.data() + channel * kernel, static_cast<size_t>(kernel));
      convolve_channel({taps, biases[static_cast<size_t>(channel)], has_activation}, padded);
      rows_of_tensor(call.outputs[0]).write(0, 0, row, 0, length, padded.data());
    }
  });
}

int64_t causal_conv_flops(const Node& node, std::span<const Type> inputs,
                          std::span<const Type> outputs) {
  const Dim kernel = (*inputs[1].shape)[2];
  return multiply(flops_per_output(node, inputs, outputs), multiply(kernel, 2)).value();
}

}  // namespace

std::vector<Op> causal_conv_with_state_ops() {
  constexpr TypeSet kTypes = {DataType::Float16, DataType::BFloat16, DataType::Float32};
  return {{.name = "CausalConvWithState",
           .versions = {27},
           .inputs = {{"input", "T"},
                      {"weight", "T"},
                      {"bias", "T", Arity::Optional},
                      {"past_state", "T", Arity::Optional}},
           .outputs = {{"output", "T"}, {"present_state", "T"}},
           .type_variables = {{"T", kTypes}},
           .attributes = {{"activation", AttributeKind::String, std::string("none")}},
           .infer = infer_causal_conv,
           .flops = causal_conv_flops,
           .kernel = run_causal_conv}};
}

}  // namespace tessera::ops
