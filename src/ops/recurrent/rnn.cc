// RNN: the simplest recurrence, one sum and one activation function.
#include <utility>
#include <vector>

#include "ops/op.h"
#include "ops/recurrent/recurrence.h"

namespace tessera::ops {
namespace {

constexpr const char* kRnnActivations[] = {"Tanh"};
constexpr RecurrentKind kRnn = {.gates = 1, .states = 1, .activations = kRnnActivations};

void run_rnn(const KernelCall& call) {
  run_recurrence(call, kRnn, [&](const Recurrence& shape, Direction& direction) {
    add_biases(direction);
    std::pmr::vector<double> sums(static_cast<size_t>(shape.batch * shape.hidden), &call.scratch);
    run_steps(call, shape, direction, [&](int64_t step) {
      repeat_line(direction.input_bias, sums);
      add_input_product(call, shape, direction, step, sums);
      add_state_product(call, shape, direction, direction.states[0], 0, 1, sums);
      for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
        if (!shape.is_running(sequence, step)) continue;
        for (int64_t unit = 0; unit < shape.hidden; ++unit) {
          const auto index = static_cast<size_t>(sequence * shape.hidden + unit);
          direction.states[0][index] = direction.activations[0].apply(shape.clipped(sums[index]));
        }
      }
    });
  });
}

int64_t rnn_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  return recurrence_flops(kRnn, node, inputs);
}

}  // namespace

std::vector<Op> rnn_ops() {
  std::vector<AttributeSchema> attributes = recurrent_attributes();
  attributes.push_back(
      {"activations", AttributeKind::Strings, std::vector<std::string>{"Tanh", "Tanh"}});
  return {{.name = "RNN",
           .versions = {1, 7, 14, 22},
           .inputs = recurrent_inputs(),
           .outputs = {{"Y", "T", Arity::Optional}, {"Y_h", "T", Arity::Optional}},
           .type_variables = {{"T", kFloatTypes}, {"T1", {DataType::Int32}}},
           .attributes = std::move(attributes),
           .infer = [](InferContext& context) { infer_recurrence(context, kRnn); },
           .flops = rnn_flops,
           .kernel = run_rnn}};
}

}  // namespace tessera::ops
