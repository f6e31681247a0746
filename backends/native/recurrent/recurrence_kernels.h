// The loop of recurrence_run.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// The units of a panel are the lanes of a vector, and the panel has a vector for each gate, as in
// ONNX: input, output, forget, cell of an LSTM; update, reset, hidden of a GRU; the only one of an
// RNN. The GRU applies its reset gate after the product with the state (linear_before_reset).
enum class RecurrentCell : uint8_t { Lstm, Gru, Rnn };

constexpr int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm ? 4 : cell == RecurrentCell::Gru ? 3 : 1;
}

// One step of some sequences in one direction. All rows are aligned to vectors. The last panel may
// be padded with units whose weights, sums and states are zero.
struct RecurrentStep {
  // For inputs and biases: [rows, panels, gates, units of a panel].
  const float* sums = nullptr;
  int64_t sums_row = 0;            // between rows
  const float* weights = nullptr;  // for the states: [panels, hidden, gates, units of a panel]
  const float* state = nullptr;    // of the previous step: [rows, panels, units of a panel]
  float* next = nullptr;           // of this step, in other memory
  float* cell = nullptr;           // of an LSTM: of the previous step, then of this one
  // Of a GRU: what is added to the products of its hidden gate with the state: [panels, units of a
  // panel]; null: nothing.
  const float* hidden_bias = nullptr;
  int64_t state_row = 0;    // between rows of state, next and cell
  float* output = nullptr;  // a copy of `next` without padding; null: none
  int64_t output_row = 0;
  int64_t rows = 0;
  int64_t hidden = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;  // exclusive
};

struct RecurrentLoops {
  int64_t units = 0;  // of a panel
  void (*advance)(const RecurrentStep& step) = nullptr;
};

// For the best instruction set of this processor.
RecurrentLoops find_recurrent_loops(RecurrentCell cell);

}  // namespace tessera::native
