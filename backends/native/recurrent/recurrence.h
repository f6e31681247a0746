// LSTM, GRU and RNN. recurrence.cc proposes them, recurrence_pack.cc packs their weights,
// recurrence_run.cc runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "recurrent/recurrence_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

struct RecurrentSizes {
  RecurrentCell cell = RecurrentCell::Lstm;
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool is_reverse = false;  // the only direction
};

// The port of each tensor of a run; -1: absent.
struct RecurrentPorts {
  int32_t input = -1;
  int32_t weights = -1;    // for the input
  int32_t recurrent = -1;  // for the state
  int32_t bias = -1;
  int32_t initial_state = -1;
  int32_t initial_cell = -1;
  int32_t output = -1;  // of all steps
  int32_t last_state = -1;
  int32_t last_cell = -1;
  bool is_side_by_side = false;  // the output is [steps, batch, directions, hidden]

  // `proposed` with the number of steps and sequences of a run with these inputs.
  RecurrentSizes sizes_of(std::span<const plugin::Buffer> inputs, RecurrentSizes proposed) const {
    const std::span<const int64_t> dims = inputs[static_cast<size_t>(input)].sizes();
    proposed.steps = dims[0];
    proposed.batch = dims[1];
    return proposed;
  }
};

// The order of the gates in memory: unit by unit, in panels, of which the last one may be padded
// with zeros.
struct GateLayout {
  explicit GateLayout(const RecurrentSizes& sizes);

  int64_t gates = 0;
  int64_t units = 0;  // of a panel
  int64_t panels = 0;
  int64_t gemm_panel = 0;  // columns of a panel of the matrix product

  int64_t state_row() const { return panels * units; }
  int64_t gate_columns() const { return gates * state_row(); }
  // gate_columns(), padded to whole panels of the matrix product.
  int64_t columns() const { return gemm_panels() * gemm_panel; }
  int64_t gemm_panels() const { return (gate_columns() + gemm_panel - 1) / gemm_panel; }

  // Of the packed biases of a direction.
  int64_t bias_row(RecurrentCell cell) const;

  // The row of the weights in ONNX's order for `column`; -1: padding.
  int64_t onnx_row(int64_t column, int64_t hidden) const;
};

// Packs [directions, gates * hidden, features] for the matrix product with the input.
plugin::Pack recurrent_weights_pack(const RecurrentSizes& sizes);

// Packs [directions, gates * hidden, hidden] as RecurrentStep::weights for each direction.
plugin::Pack recurrent_states_pack(const RecurrentSizes& sizes);

// Packs [directions, 2 * gates * hidden]: for each direction, the sums of the biases of input and
// state, in the order of the columns; of a GRU's hidden gate the bias of the input only, and its
// bias of the state in the order of the units behind the columns.
plugin::Pack recurrent_bias_pack(const RecurrentSizes& sizes);

int64_t recurrent_workspace_bytes(const RecurrentSizes& sizes);

// Built for the sizes of the weights; steps and batch are those of each run.
std::unique_ptr<plugin::Kernel> make_recurrent_kernel(const RecurrentSizes& sizes,
                                                      const RecurrentPorts& ports);

}  // namespace tessera::native
