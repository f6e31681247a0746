// LSTM. Each step is two small matrix products (input and state by their weights), then the gates;
// state is kept in double.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/check_shape.h"
#include "ops/dense_operand.h"
#include "ops/lstm_activation.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

int64_t direction_count(const Node& node) {
  return node.attributes.get_string("direction") == "bidirectional" ? 2 : 1;
}

bool is_batch_first(const Node& node) {
  const int64_t* layout = node.attributes.find_int("layout");
  return layout != nullptr && *layout != 0;
}

void check_attributes(const InferContext& context) {
  const Node& node = context.node();
  const std::string& direction = node.attributes.get_string("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    context.fail("expected 'direction' forward, reverse or bidirectional, found '" + direction +
                 "'");
  }
  if (const int64_t* layout = node.attributes.find_int("layout")) {
    if (*layout != 0 && *layout != 1) {
      context.fail("expected 'layout' 0 or 1, found " + std::to_string(*layout));
    }
  }
  read_activations(node, direction_count(node));
}

// The shape of input `index`, checked to have `rank` axes; nullptr where it is unknown.
const Shape* shape_of_rank(const InferContext& context, size_t index, size_t rank) {
  const Shape* shape = context.shape(index);
  if (shape != nullptr && shape->size() != rank) {
    context.fail_input(index,
                       "expected rank " + std::to_string(rank) + ", found [" + text(*shape) + "]");
  }
  return shape;
}

// The length of the state, from R or the attribute.
std::optional<Dim> hidden_size(const InferContext& context) {
  const int64_t* declared = context.node().attributes.find_int("hidden_size");
  const Shape* recurrent = shape_of_rank(context, 2, 3);
  if (declared != nullptr && *declared < 1) {
    context.fail("expected 'hidden_size' of at least 1, found " + std::to_string(*declared));
  }
  if (recurrent == nullptr) return declared ? std::optional(Dim(*declared)) : std::nullopt;
  if (declared != nullptr && !can_be_equal({recurrent->back()}, {Dim(*declared)})) {
    context.fail_input(2, "expected a last axis of " + std::to_string(*declared) +
                              " as 'hidden_size' says, found [" + text(*recurrent) + "]");
  }
  return declared != nullptr ? Dim(*declared) : recurrent->back();
}

void infer_lstm(InferContext& context) {
  check_attributes(context);
  for (size_t index = 0; index < 3; ++index) context.set_output(index, context.element(0));
  const Shape* input = shape_of_rank(context, 0, 3);
  const std::optional<Dim> hidden = hidden_size(context);
  if (input == nullptr || !hidden) return;
  const bool is_batched = is_batch_first(context.node());
  const Dim steps = (*input)[is_batched ? 1 : 0];
  const Dim batch = (*input)[is_batched ? 0 : 1];
  const Dim& features = (*input)[2];
  if (features == Dim(0)) {
    context.fail_input(0, "expected at least 1 feature, found [" + text(*input) + "]");
  }
  const Dim directions = direction_count(context.node());
  const Dim gates = multiply(*hidden, 4);
  const Shape state =
      is_batched ? Shape{batch, directions, *hidden} : Shape{directions, batch, *hidden};
  check_shape(context, 1, {directions, gates, features});
  check_shape(context, 2, {directions, gates, *hidden});
  check_shape(context, 3, {directions, multiply(gates, 2)});
  check_shape(context, 4, {batch});
  check_shape(context, 5, state);
  check_shape(context, 6, state);
  check_shape(context, 7, {directions, multiply(*hidden, 3)});
  context.set_output(0, context.element(0),
                     is_batched ? Shape{batch, steps, directions, *hidden}
                                : Shape{steps, directions, batch, *hidden});
  context.set_output(1, context.element(0), state);
  context.set_output(2, context.element(0), state);
}

// The numbers of a call, and where elements lie in both layouts.
struct Recurrence {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool is_batched = false;
  bool couples_forget = false;
  double clip = std::numeric_limits<double>::infinity();
  std::vector<int64_t> lengths;  // of each sequence

  int64_t input_row(int64_t step, int64_t sequence) const {
    return is_batched ? sequence * steps + step : step * batch + sequence;
  }
  int64_t output_row(int64_t step, int64_t direction, int64_t sequence) const {
    return is_batched ? (sequence * steps + step) * directions + direction
                      : (step * directions + direction) * batch + sequence;
  }
  int64_t state_row(int64_t direction, int64_t sequence) const {
    return is_batched ? sequence * directions + direction : direction * batch + sequence;
  }
};

Recurrence recurrence_of(const KernelCall& call) {
  Recurrence result;
  const auto input = call.inputs[0].dims;
  result.is_batched = is_batch_first(call.node);
  result.steps = input[result.is_batched ? 1 : 0];
  result.batch = input[result.is_batched ? 0 : 1];
  result.features = input[2];
  result.hidden = call.inputs[2].dims[2];
  result.directions = direction_count(call.node);
  result.couples_forget = call.node.attributes.get_int("input_forget") != 0;
  if (const float* clip = call.node.attributes.find_float("clip")) {
    if (*clip > 0) result.clip = *clip;
  }
  return result;
}

void read_lengths(const KernelCall& call, Recurrence& shape) {
  if (!call.has_input(4)) {
    shape.lengths.assign(static_cast<size_t>(shape.batch), shape.steps);
    return;
  }
  for (const int32_t length : call.inputs[4].as<int32_t>()) {
    if (length < 0 || length > shape.steps) {
      call.fail("expected 'sequence_lens' from 0 to " + std::to_string(shape.steps) + ", found " +
                std::to_string(length));
    }
    shape.lengths.push_back(length);
  }
}

// What one direction computes with. Gates lie in the order of ONNX: input, output, forget, cell;
// peepholes: input, output, forget.
struct Direction {
  int64_t index = 0;
  bool is_reverse = false;
  std::vector<double> bias;       // of input and state added up, [4 * hidden]
  std::vector<double> peepholes;  // [3 * hidden]
  std::array<Activation, 3> activations;
  std::vector<double> state;  // H, [batch, hidden]
  std::vector<double> cell;   // C, [batch, hidden]
  std::vector<double> gates;  // of the current step, [batch, 4 * hidden]

  // The step of `sequence` that is computed as number `step`.
  int64_t time_of(const Recurrence& shape, int64_t step, int64_t sequence) const {
    const int64_t length = shape.lengths[static_cast<size_t>(sequence)];
    if (step >= length) return 0;
    return is_reverse ? length - 1 - step : step;
  }
};

std::vector<double> initial_state(const KernelCall& call, size_t index, const Recurrence& shape,
                                  int64_t direction) {
  std::vector<double> state(static_cast<size_t>(shape.batch * shape.hidden), 0.0);
  if (!call.has_input(index)) return state;
  const std::vector<double> given = to_doubles(call.inputs[index]);
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    std::copy_n(given.begin() + shape.state_row(direction, sequence) * shape.hidden, shape.hidden,
                state.begin() + sequence * shape.hidden);
  }
  return state;
}

Direction direction_of(const KernelCall& call, const Recurrence& shape, int64_t index) {
  Direction direction;
  const auto hidden = static_cast<size_t>(shape.hidden);
  const auto offset = static_cast<size_t>(index);
  direction.index = index;
  direction.is_reverse = index == 1 || call.node.attributes.get_string("direction") == "reverse";
  direction.bias.assign(4 * hidden, 0.0);
  if (call.has_input(3)) {
    const std::vector<double> both = to_doubles(call.inputs[3]);
    for (size_t gate = 0; gate < 4 * hidden; ++gate) {
      direction.bias[gate] =
          both[offset * 8 * hidden + gate] + both[(offset * 8 + 4) * hidden + gate];
    }
  }
  direction.peepholes.assign(3 * hidden, 0.0);
  if (call.has_input(7)) {
    const std::vector<double> all = to_doubles(call.inputs[7]);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(offset * 3 * hidden), 3 * hidden,
                direction.peepholes.begin());
  }
  const std::vector<Activation> activations = read_activations(call.node, shape.directions);
  std::copy_n(activations.begin() + static_cast<std::ptrdiff_t>(3 * offset), 3,
              direction.activations.begin());
  direction.state = initial_state(call, 5, shape, index);
  direction.cell = initial_state(call, 6, shape, index);
  direction.gates.resize(static_cast<size_t>(shape.batch) * 4 * hidden);
  return direction;
}

// gates = bias + input * W^T + state * R^T, for all sequences at one step.
template <class T>
void multiply_gates(const KernelCall& call, const Recurrence& shape, Direction& direction,
                    int64_t step) {
  const int64_t gate_count = 4 * shape.hidden;
  const T* input = call.inputs[0].as<T>().data();
  const T* weights = call.inputs[1].as<T>().data() + direction.index * gate_count * shape.features;
  const T* recurrent = call.inputs[2].as<T>().data() + direction.index * gate_count * shape.hidden;
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    std::copy(direction.bias.begin(), direction.bias.end(),
              direction.gates.begin() + sequence * gate_count);
  }
  MatrixProduct<double> product = {
      .rows = shape.batch, .columns = gate_count, .depth = shape.features};
  product.left.runs_along_depth = true;
  product.left.read = [&](int64_t, int64_t sequence, int64_t begin, int64_t count, double* target) {
    const int64_t row = shape.input_row(direction.time_of(shape, step, sequence), sequence);
    std::transform(input + row * shape.features + begin,
                   input + row * shape.features + begin + count, target, to_double<T>);
  };
  product.right = dense_operand<double>(weights, shape.features, true);
  product.store = [&](int64_t, int64_t row, int64_t column, int64_t count, const double* sums) {
    double* target = direction.gates.data() + row * gate_count + column;
    for (int64_t index = 0; index < count; ++index) target[index] += sums[index];
  };
  multiply(call.pool, product);
  product.depth = shape.hidden;
  product.left = dense_operand<double>(direction.state.data(), shape.hidden, true);
  product.right = dense_operand<double>(recurrent, shape.hidden, true);
  multiply(call.pool, product);
}

// Moves one sequence one step on.
void apply_gates(const Recurrence& shape, Direction& direction, int64_t sequence) {
  const auto hidden = static_cast<size_t>(shape.hidden);
  const auto& [f, g, h] = direction.activations;
  const auto clipped = [&](double value) { return std::clamp(value, -shape.clip, shape.clip); };
  const double* gates = direction.gates.data() + sequence * 4 * shape.hidden;
  double* state = direction.state.data() + sequence * shape.hidden;
  double* cell = direction.cell.data() + sequence * shape.hidden;
  for (size_t unit = 0; unit < hidden; ++unit) {
    const double* peepholes = direction.peepholes.data() + unit;
    const double input = f.apply(clipped(gates[unit] + peepholes[0] * cell[unit]));
    const double forget =
        shape.couples_forget
            ? 1 - input
            : f.apply(clipped(gates[2 * hidden + unit] + peepholes[2 * hidden] * cell[unit]));
    const double candidate = g.apply(clipped(gates[3 * hidden + unit]));
    cell[unit] = forget * cell[unit] + input * candidate;
    const double output = f.apply(clipped(gates[hidden + unit] + peepholes[hidden] * cell[unit]));
    // The threshold is for sums over inputs; the cell itself goes unclipped, as in ONNX Runtime.
    state[unit] = output * h.apply(cell[unit]);
  }
}

template <class T>
void store_row(const MutableTensorView& output, int64_t row, const std::vector<double>& values,
               int64_t sequence, int64_t hidden) {
  T* target = output.as<T>().data() + row * hidden;
  const double* source = values.data() + sequence * hidden;
  std::transform(source, source + hidden, target, from_double<T>);
}

template <class T>
void run_direction(const KernelCall& call, const Recurrence& shape, Direction direction) {
  const int64_t most = *std::max_element(shape.lengths.begin(), shape.lengths.end());
  for (int64_t step = 0; step < most; ++step) {
    multiply_gates<T>(call, shape, direction, step);
    for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
      if (step >= shape.lengths[static_cast<size_t>(sequence)]) continue;
      apply_gates(shape, direction, sequence);
      if (!call.has_output(0)) continue;
      const int64_t time = direction.time_of(shape, step, sequence);
      store_row<T>(call.outputs[0], shape.output_row(time, direction.index, sequence),
                   direction.state, sequence, shape.hidden);
    }
  }
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const int64_t row = shape.state_row(direction.index, sequence);
    if (call.has_output(1)) {
      store_row<T>(call.outputs[1], row, direction.state, sequence, shape.hidden);
    }
    if (call.has_output(2)) {
      store_row<T>(call.outputs[2], row, direction.cell, sequence, shape.hidden);
    }
  }
}

void run_lstm(const KernelCall& call) {
  Recurrence shape = recurrence_of(call);
  // Without outputs there is nothing to compute, however large the empty input claims to be.
  if (std::ranges::all_of(call.outputs, [](const auto& output) { return output.elements == 0; })) {
    return;
  }
  read_lengths(call, shape);
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Steps beyond the end of a sequence are zero.
    if (call.has_output(0)) std::ranges::fill(call.outputs[0].as<T>(), T(0.0F));
    for (int64_t index = 0; index < shape.directions; ++index) {
      run_direction<T>(call, shape, direction_of(call, shape, index));
    }
  });
}

// The two products of each step; gates cost little beside them.
int64_t lstm_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  const Shape& input = *inputs[0].shape;
  const Dim hidden = inputs[2].shape->back();
  const Dim rows = multiply(multiply(input[0], input[1]), direction_count(node));
  return multiply(multiply(rows, multiply(hidden, 8)), add(input[2], hidden)).value();
}

}  // namespace

std::vector<Op> lstm_ops() {
  constexpr Arity kOptional = Arity::Optional;
  return {{.name = "LSTM",
           .versions = {1, 7, 14, 22},
           .inputs = {{"X", "T"},
                      {"W", "T"},
                      {"R", "T"},
                      {"B", "T", kOptional},
                      {"sequence_lens", "T1", kOptional},
                      {"initial_h", "T", kOptional},
                      {"initial_c", "T", kOptional},
                      {"P", "T", kOptional}},
           .outputs = {{"Y", "T", kOptional}, {"Y_h", "T", kOptional}, {"Y_c", "T", kOptional}},
           .type_variables = {{"T", kFloatTypes}, {"T1", {DataType::Int32}}},
           .attributes = {{"activation_alpha", AttributeKind::Floats, std::nullopt},
                          {"activation_beta", AttributeKind::Floats, std::nullopt},
                          {"activations", AttributeKind::Strings, std::nullopt},
                          {"clip", AttributeKind::Float, std::nullopt},
                          {"direction", AttributeKind::String, "forward"},
                          {"hidden_size", AttributeKind::Int, std::nullopt},
                          {"input_forget", AttributeKind::Int, int64_t{0}},
                          {"layout", AttributeKind::Int, int64_t{0}, 14},
                          {"output_sequence", AttributeKind::Int, int64_t{0}, 1, 6}},
           .infer = infer_lstm,
           .flops = lstm_flops,
           .kernel = run_lstm}};
}

}  // namespace tessera::ops
