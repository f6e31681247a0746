// GRU. The reset gate multiplies the state before its product with the weights of the hidden gate
// or, with linear_before_reset, the result of that product including its bias.
#include <utility>
#include <vector>

#include "ops/op.h"
#include "ops/recurrent/recurrence.h"

namespace tessera::ops {
namespace {

// The order of the gates: update, reset, hidden.
constexpr int64_t kUpdate = 0;
constexpr int64_t kReset = 1;
constexpr int64_t kHidden = 2;
constexpr const char* kGruActivations[] = {"Sigmoid", "Tanh"};
constexpr RecurrentKind kGru = {.gates = 3, .states = 1, .activations = kGruActivations};

class GruStep {
 public:
  GruStep(const KernelCall& call, const Recurrence& shape, Direction& direction)
      : call_(call),
        shape_(shape),
        direction_(direction),
        is_linear_first_(call.node.attributes.get_int("linear_before_reset") != 0),
        from_input_(static_cast<size_t>(shape.batch * kGru.gates * shape.hidden), &call.scratch),
        from_state_(from_input_.size(), &call.scratch),
        reset_state_(direction.states[0].size(), &call.scratch) {}

  void operator()(int64_t step) {
    std::pmr::vector<double>& state = direction_.states[0];
    repeat_line(direction_.input_bias, from_input_);
    repeat_line(direction_.state_bias, from_state_);
    add_input_product(call_, shape_, direction_, step, from_input_);
    if (is_linear_first_) {
      add_state_product(call_, shape_, direction_, state, kUpdate, 3, from_state_);
    } else {
      add_state_product(call_, shape_, direction_, state, kUpdate, 2, from_state_);
      for_each_unit([&](int64_t sequence, int64_t unit, size_t element) {
        reset_state_[element] = gate(kReset, sequence, unit) * state[element];
      });
      add_state_product(call_, shape_, direction_, reset_state_, kHidden, 1, from_state_);
    }
    for_each_unit([&](int64_t sequence, int64_t unit, size_t element) {
      if (!shape_.is_running(sequence, step)) return;
      const double update = gate(kUpdate, sequence, unit);
      const double reset = is_linear_first_ ? gate(kReset, sequence, unit) : 1;
      const size_t hidden = index_of(kHidden, sequence, unit);
      const double candidate = direction_.activations[1].apply(
          shape_.clipped(from_input_[hidden] + reset * from_state_[hidden]));
      state[element] = (1 - update) * candidate + update * state[element];
    });
  }

 private:
  template <class Body>
  void for_each_unit(const Body& body) const {
    for (int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
      for (int64_t unit = 0; unit < shape_.hidden; ++unit) {
        body(sequence, unit, static_cast<size_t>(sequence * shape_.hidden + unit));
      }
    }
  }

  size_t index_of(int64_t gate, int64_t sequence, int64_t unit) const {
    return static_cast<size_t>((sequence * kGru.gates + gate) * shape_.hidden + unit);
  }

  // The update or reset gate, computed from complete sums.
  double gate(int64_t gate, int64_t sequence, int64_t unit) const {
    const size_t index = index_of(gate, sequence, unit);
    return direction_.activations[0].apply(shape_.clipped(from_input_[index] + from_state_[index]));
  }

  const KernelCall& call_;
  const Recurrence& shape_;
  Direction& direction_;
  bool is_linear_first_;
  // Sums of one step including biases, [batch, 3 * hidden].
  std::pmr::vector<double> from_input_;
  std::pmr::vector<double> from_state_;
  std::pmr::vector<double> reset_state_;  // reset * H, [batch, hidden]
};

void run_gru(const KernelCall& call) {
  run_recurrence(call, kGru, [&](const Recurrence& shape, Direction& direction) {
    GruStep step(call, shape, direction);
    run_steps(call, shape, direction, step);
  });
}

int64_t gru_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  return recurrence_flops(kGru, node, inputs);
}

}  // namespace

std::vector<Op> gru_ops() {
  std::vector<AttributeSchema> attributes = recurrent_attributes();
  attributes.push_back({"activations", AttributeKind::Strings, std::nullopt});
  attributes.push_back({"linear_before_reset", AttributeKind::Int, int64_t{0}});
  return {{.name = "GRU",
           .versions = {3, 7, 14, 22},
           .inputs = recurrent_inputs(),
           .outputs = {{"Y", "T", Arity::Optional}, {"Y_h", "T", Arity::Optional}},
           .type_variables = {{"T", kFloatTypes}, {"T1", {DataType::Int32}}},
           .attributes = std::move(attributes),
           .infer = [](InferContext& context) { infer_recurrence(context, kGru); },
           .flops = gru_flops,
           .kernel = run_gru}};
}

}  // namespace tessera::ops
