// LSTM. lstm.cc proposes it, lstm_pack.cc packs its weights, lstm_run.cc runs it.
#pragma once

#include <cstdint>
#include <memory>

#include "recurrent/lstm_kernels.h"
#include "tessera/backend.h"

namespace tessera::native {

struct LstmSizes {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool is_reverse = false;  // the only direction
};

// The port of each tensor of a run; -1: absent.
struct LstmPorts {
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
};

// The order of the gates in memory: unit by unit, in panels, of which the last one may be padded
// with zeros.
struct LstmGateLayout {
  explicit LstmGateLayout(int64_t hidden);

  int64_t units = 0;  // of a panel
  int64_t panels = 0;
  int64_t gemm_panel = 0;  // columns of a panel of the matrix product

  int64_t state_row() const { return panels * units; }
  int64_t columns() const { return kLstmGates * state_row(); }
  // columns() is a multiple of gemm_panel.
  int64_t gemm_panels() const { return columns() / gemm_panel; }

  // The row of the weights in ONNX's order for `column`; -1: padding.
  int64_t onnx_row(int64_t column, int64_t hidden) const;
};

// Packs [directions, gates * hidden, features] for the matrix product with the input.
plugin::Pack lstm_weights_pack(const LstmSizes& sizes);

// Packs [directions, gates * hidden, hidden] as LstmStep::weights for each direction.
plugin::Pack lstm_recurrent_pack(const LstmSizes& sizes);

// Packs [directions, 2 * gates * hidden]: the sums of the biases of input and state, in the order
// of the columns.
plugin::Pack lstm_bias_pack(const LstmSizes& sizes);

int64_t lstm_workspace_bytes(const LstmSizes& sizes);

std::unique_ptr<plugin::Kernel> make_lstm_kernel(const LstmSizes& sizes, const LstmPorts& ports);

}  // namespace tessera::native
