// The loop of lstm_run.cc, compiled for every instruction set that the processor may have.
#pragma once

#include <cstdint>

namespace tessera::native {

// Units of a panel stand side by side, one in each lane of a vector, and the panel has a vector for
// each gate: input, output, forget, cell, as in ONNX.
inline constexpr int64_t kLstmGates = 4;

// One step of some sequences in one direction. All rows begin at whole vectors, and their last
// panel may have units that are not there: their weights, sums and states are zero.
struct LstmStep {
  const float* sums = nullptr;     // of inputs and biases: [rows, panels, gates, units of a panel]
  int64_t sums_row = 0;            // from row to row
  const float* weights = nullptr;  // of the states: [panels, hidden, gates, units of a panel]
  const float* state = nullptr;    // of the step before: [rows, panels, units of a panel]
  float* next = nullptr;           // of this step, elsewhere
  float* cell = nullptr;           // of the step before, then of this one
  int64_t state_row = 0;           // of the last three
  float* output = nullptr;         // a copy of `next` without units that are not there; null: none
  int64_t output_row = 0;
  int64_t rows = 0;
  int64_t hidden = 0;
  int64_t first_panel = 0;
  int64_t end_panel = 0;  // exclusive
};

struct LstmLoops {
  int64_t units = 0;  // of a panel
  void (*advance)(const LstmStep& step) = nullptr;
};

// For the best instruction set of this processor.
LstmLoops find_lstm_loops();

}  // namespace tessera::native
