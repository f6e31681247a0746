// LSTM. Each step computes two small matrix products (input and state times their weights), then
// the gates.
#include "ops/recurrent/lstm.h"

#include <algorithm>
#include <utility>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

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

void run_lstm_of_numbers(const KernelCall& call) {
  run_lstm(call, [](std::span<double>) {});
}

int64_t lstm_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  return recurrence_flops(kLstm, node, inputs);
}

}  // namespace

std::optional<Dim> infer_lstm(InferContext& context, const RecurrentKind& kind) {
  std::optional<Dim> hidden = infer_recurrence(context, kind);
  if (hidden) check_shape(context, 7, {direction_count(context.node()), multiply(*hidden, 3)});
  return hidden;
}

void run_lstm(const KernelCall& call, FunctionRef<void(std::span<double> state)> prepare) {
  const bool couples_forget = call.node.attributes.get_int("input_forget") != 0;
  run_recurrence(call, kLstm, [&](const Recurrence& shape, Direction& direction) {
    add_biases(direction);
    const std::pmr::vector<double> peepholes = peepholes_of(call, shape, direction.index);
    const int64_t width = shape.gates * shape.hidden;
    std::pmr::vector<double> gates(static_cast<size_t>(shape.batch * width), &call.scratch);
    std::pmr::vector<double> factors(direction.states[0].size(), &call.scratch);
    run_steps(call, shape, direction, [&](int64_t step) {
      std::ranges::copy(direction.states[0], factors.begin());
      prepare(factors);
      repeat_line(direction.input_bias, gates);
      add_input_product(call, shape, direction, step, gates);
      add_state_product(call, shape, direction, factors, 0, shape.gates, gates);
      for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
        if (!shape.is_running(sequence, step)) continue;
        apply_gates(shape, direction, peepholes, couples_forget, sequence,
                    gates.data() + sequence * width);
      }
    });
  });
}

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
           .infer = [](InferContext& context) { infer_lstm(context, kLstm); },
           .flops = lstm_flops,
           .kernel = run_lstm_of_numbers}};
}

}  // namespace tessera::ops
