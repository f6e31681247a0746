// LSTM for ops that compute it in another form.
#pragma once

#include <optional>
#include <span>

#include "base/threads/function_ref.h"
#include "ops/recurrent/recurrence.h"

namespace tessera::ops {

// The order of the gates: input, output, forget, cell; of the peepholes: input, output, forget.
inline constexpr const char* kLstmActivations[] = {"Sigmoid", "Tanh", "Tanh"};
inline constexpr RecurrentKind kLstm = {.gates = 4, .states = 2, .activations = kLstmActivations};

// Checks attributes and shapes and sets all outputs. Returns the size of a state, if it is known.
std::optional<Dim> infer_lstm(InferContext& context, const RecurrentKind& kind);

// The reference kernel. `prepare` gets a copy of the state H of all sequences, [batch, hidden],
// before each step multiplies it by the weights.
void run_lstm(const KernelCall& call, FunctionRef<void(std::span<double> state)> prepare);

}  // namespace tessera::ops
