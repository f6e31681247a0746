// LSTM. Each step computes two small matrix products (input and state times their weights), then
// the gates.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/op.h"
#include "ops/recurrent/recurrence.h"

namespace tessera::ops {
namespace {

// The order of the gates: input, output, forget, cell; of the peepholes: input, output, forget.
constexpr const char* kLstmActivations[] = {"Sigmoid", "Tanh", "Tanh"};
constexpr RecurrentKind kLstm = {.gates = 4, .states = 2, .activations = kLstmActivations};

void infer_lstm(InferContext& context) {
  const std::optional<Dim> hidden = infer_recurrence(context, kLstm);
  if (hidden) check_shape(context, 7, {direction_count(context.node()), multiply(*hidden, 3)});
}

std::pmr::vector<double> peepholes_of(const KernelCall& call, const Recurrence& shape,
                                      int64_t direction) {
  const int64_t width = 3 * shape.hidden;
  std::pmr::vector<double> peepholes(static_cast<size_t>(width), 0.0, &call.scratch);
  if (!call.has_input(7)) return peepholes;
  const std::pmr::vector<double> all = to_doubles(call.inputs[7], call.scratch);
  std::copy_n(all.begin() + direction * width, width, peepholes.begin());
  return peepholes;
}

// Advances one sequence by one step.
void apply_gates(const Recurrence& shape, Direction& direction, std::span<const double> holes,
                 bool couples_forget, int64_t sequence, const double* gates) {
  const auto hidden = static_cast<size_t>(shape.hidden);
  const Activation& f = direction.activations[0];
  const Activation& g = direction.activations[1];
  const Activation& h = direction.activations[2];
  double* state = direction.states[0].data() + sequence * shape.hidden;
  double* cell = direction.states[1].data() + sequence * shape.hidden;
  for (size_t unit = 0; unit < hidden; ++unit) {
    const double* peepholes = holes.data() + unit;
    const double input = f.apply(shape.clipped(gates[unit] + peepholes[0] * cell[unit]));
    const double forget =
        couples_forget
            ? 1 - input
            : f.apply(shape.clipped(gates[2 * hidden + unit] + peepholes[2 * hidden] * cell[unit]));
    const double candidate = g.apply(shape.clipped(gates[3 * hidden + unit]));
    cell[unit] = forget * cell[unit] + input * candidate;
    const double output =
        f.apply(shape.clipped(gates[hidden + unit] + peepholes[hidden] * cell[unit]));
    // The clip threshold applies to sums over inputs; the cell state is not clipped, as in ONNX
    // Runtime.
    state[unit] = output * h.apply(cell[unit]);
  }
}

void run_lstm(const KernelCall& call) {
  const bool couples_forget = call.node.attributes.get_int("input_forget") != 0;
  run_recurrence(call, kLstm, [&](const Recurrence& shape, Direction& direction) {
    add_biases(direction);
    const std::pmr::vector<double> peepholes = peepholes_of(call, shape, direction.index);
    const int64_t width = shape.gates * shape.hidden;
    std::pmr::vector<double> gates(static_cast<size_t>(shape.batch * width), &call.scratch);
    run_steps(call, shape, direction, [&](int64_t step) {
      repeat_line(direction.input_bias, gates);
      add_input_product(call, shape, direction, step, gates);
      add_state_product(call, shape, direction, direction.states[0], 0, shape.gates, gates);
      for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
        if (!shape.is_running(sequence, step)) continue;
        apply_gates(shape, direction, peepholes, couples_forget, sequence,
                    gates.data() + sequence * width);
      }
    });
  });
}

int64_t lstm_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  return recurrence_flops(kLstm, node, inputs);
}

}  // namespace

std::vector<Op> lstm_ops() {
  constexpr Arity kOptional = Arity::Optional;
  std::vector<Parameter> inputs = recurrent_inputs();
  inputs.push_back({"initial_c", "T", kOptional});
  inputs.push_back({"P", "T", kOptional});
  std::vector<AttributeSchema> attributes = recurrent_attributes();
  attributes.push_back({"activations", AttributeKind::Strings, std::nullopt});
  attributes.push_back({"input_forget", AttributeKind::Int, int64_t{0}});
  return {{.name = "LSTM",
           .versions = {1, 7, 14, 22},
           .inputs = std::move(inputs),
           .outputs = {{"Y", "T", kOptional}, {"Y_h", "T", kOptional}, {"Y_c", "T", kOptional}},
           .type_variables = {{"T", kFloatTypes}, {"T1", {DataType::Int32}}},
           .attributes = std::move(attributes),
           .infer = infer_lstm,
           .flops = lstm_flops,
           .kernel = run_lstm}};
}

}  // namespace tessera::ops
