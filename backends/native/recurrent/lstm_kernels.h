// The loop of lstm_run.cc, compiled for every instruction set that Highway supports.
#pragma once

#include <cstdint>

namespace tessera::native {

// The units of a panel are the lanes of a vector, and the panel has a vector for each gate: input,
// output, forget, cell, as in ONNX.
inline constexpr int64_t kLstmGates = 4;

// One step of some sequences in one direction. All rows are aligned to vectors. The last panel may
// be padded with units whose weights, sums and states are zero.
struct LstmStep {
  const float* sums = nullptr;     // for inputs and biases: [rows, panels, gates, units of a panel]
  int64_t sums_row = 0;            // between rows
  const float* weights = nullptr;  // for the states: [panels, hidden, gates, units of a panel]
  const float* state = nullptr;    // of the previous step: [rows, panels, units of a panel]
  float* next = nullptr;           // of this step, in other memory
  float* cell = nullptr;           // of the previous step, then of this one
  int64_t state_row = 0;           // between rows of state, next and cell
  float* output = nullptr;         // a copy of `next` without padding; null: none
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
