// DynamicQuantizeLSTM of com.microsoft: an LSTM whose weights are bytes. The input as a whole, and
// the state in each step, are multiplied as bytes of the scale that their range needs.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <array>

#include "ops/check_shape.h"
#include "ops/domains.h"
#include "ops/quantize/quantization.h"
#include "ops/recurrent/lstm.h"

namespace tessera::ops {
namespace {

constexpr RecurrentKind kDynamicLstm = {
    .gates = 4, .states = 2, .activations = kLstmActivations, .has_transposed_weights = true};
constexpr size_t kInputsOfLstm = 8;
constexpr size_t kInputScale = 8;
constexpr size_t kStateScale = 10;

void infer_dynamic_lstm(InferContext& context) {
  const std::optional<Dim> hidden = infer_lstm(context, kDynamicLstm);
  const Dim directions = direction_count(context.node());
  for (size_t index = kInputScale; index < kStateScale + 2; ++index) {
    const Shape* const shape = context.shape(index);
    if (shape == nullptr) continue;
    if (shape->size() == 2 && hidden) {
      check_shape(context, index, {directions, multiply(*hidden, kDynamicLstm.gates)});
    } else if (shape->size() != 2) {
      check_shape(context, index, {directions});
    }
  }
}

// Replaces the numbers by those that bytes of the scale of their range stand for.
void round_to_range(std::span<double> numbers, std::pmr::memory_resource& memory) {
  const std::pmr::vector<float> floats(numbers.begin(), numbers.end(), &memory);
  const TensorScale range = range_scale(floats);
  for (size_t index = 0; index < numbers.size(); ++index) {
    const double quotient = floats[index] / static_cast<float>(range.scale);
    const auto byte = quantized<uint8_t>(quotient, static_cast<uint8_t>(range.zero_point));
    numbers[index] = range.real_of(byte);
  }
}

// The weights [directions, depth, width] as real numbers [directions, width, depth]. Input `scales`
// has their scales, the next one their zero points.
std::pmr::vector<double> real_weights(const KernelCall& call, size_t weights, size_t scales) {
  const TensorView& bytes = call.inputs[weights];
  std::pmr::vector<double> reals(static_cast<size_t>(bytes.elements), &call.scratch);
  const int64_t depth = bytes.dims[1];
  const int64_t width = bytes.dims[2];
  const std::span<const float> factors = call.inputs[scales].as<float>();
  const bool has_factors = call.inputs[scales].rank() == 2;
  const bool has_zeros = call.inputs[scales + 1].rank() == 2;
  visit_byte(bytes.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const source = bytes.as<T>().data();
    const T* const zeros = call.inputs[scales + 1].as<T>().data();
    call.pool.parallel_for(bytes.dims[0] * width, 16, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t direction = line / width;
        const double factor = factors[static_cast<size_t>(has_factors ? line : direction)];
        const T zero = zeros[has_zeros ? line : direction];
        const T* const column = source + direction * depth * width + line % width;
        for (int64_t index = 0; index < depth; ++index) {
          reals[static_cast<size_t>(line * depth + index)] =
              (column[index * width] - zero) * factor;
        }
      }
    });
  });
  return reals;
}

void run_dynamic_lstm(const KernelCall& call) {
  const std::span<const float> numbers = call.inputs[0].as<float>();
  std::pmr::vector<double> input(numbers.begin(), numbers.end(), &call.scratch);
  round_to_range(input, call.scratch);
  const std::pmr::vector<double> of_input = real_weights(call, 1, kInputScale);
  const std::pmr::vector<double> of_state = real_weights(call, 2, kStateScale);
  std::array<TensorView, kInputsOfLstm> inputs;
  std::copy_n(call.inputs.begin(), kInputsOfLstm, inputs.begin());
  const auto transposed_dims = [](const TensorView& weights) {
    return std::array{weights.dims[0], weights.dims[2], weights.dims[1]};
  };
  const auto input_dims = transposed_dims(call.inputs[1]);
  const auto state_dims = transposed_dims(call.inputs[2]);
  const auto view = [](std::span<const int64_t> dims, const std::pmr::vector<double>& elements) {
    return TensorView{DataType::Float64, dims, elements.data(), std::ssize(elements)};
  };
  inputs[0] = view(call.inputs[0].dims, input);
  inputs[1] = view(input_dims, of_input);
  inputs[2] = view(state_dims, of_state);
  run_lstm({call.node, inputs, call.outputs, call.pool, call.scratch},
           [&](std::span<double> state) { round_to_range(state, call.scratch); });
}

int64_t dynamic_lstm_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  const Shape& input = *inputs[0].shape;
  const Shape& weights = *inputs[2].shape;
  const Dim rows = multiply(multiply(input[0], input[1]), direction_count(node));
  return multiply(multiply(rows, multiply(weights[2], 2)), add(input[2], weights[1])).value();
}

}  // namespace

std::vector<Op> dynamic_quantize_lstm_ops() {
  constexpr Arity kOptional = Arity::Optional;
  constexpr TypeSet kRealType = {DataType::Float32};
  return {{.name = "DynamicQuantizeLSTM",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T"},
                      {"W", "T2"},
                      {"R", "T2"},
                      {"B", "T", kOptional},
                      {"sequence_lens", "T1", kOptional},
                      {"initial_h", "T", kOptional},
                      {"initial_c", "T", kOptional},
                      {"P", "T", kOptional},
                      {"W_scale", "T"},
                      {"W_zero_point", "T2"},
                      {"R_scale", "T"},
                      {"R_zero_point", "T2"}},
           .outputs = {{"Y", "T", kOptional}, {"Y_h", "T", kOptional}, {"Y_c", "T", kOptional}},
           .type_variables = {{"T", kRealType}, {"T1", {DataType::Int32}}, {"T2", kByteTypes}},
           .attributes = {{"activation_alpha", AttributeKind::Floats, std::nullopt},
                          {"activation_beta", AttributeKind::Floats, std::nullopt},
                          {"activations", AttributeKind::Strings, std::nullopt},
                          {"clip", AttributeKind::Float, std::nullopt},
                          {"direction", AttributeKind::String, "forward"},
                          {"hidden_size", AttributeKind::Int, std::nullopt},
                          {"input_forget", AttributeKind::Int, int64_t{0}}},
           .infer = infer_dynamic_lstm,
           .flops = dynamic_lstm_flops,
           .kernel = run_dynamic_lstm}};
}

}  // namespace tessera::ops
