// What an LSTM is made of here. lstm.cc offers it, lstm_pack.cc packs its weights, lstm_run.cc runs
// it.
#pragma once

#include <cstdint>
#include <memory>

#include "lstm_kernels.h"
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

// Where each tensor of a run is among the candidate's ports; -1: there is none.
struct LstmPorts {
  int32_t input = -1;
  int32_t weights = -1;    // of the input
  int32_t recurrent = -1;  // of the state
  int32_t bias = -1;
  int32_t initial_state = -1;
  int32_t initial_cell = -1;
  int32_t output = -1;  // of all steps
  int32_t last_state = -1;
  int32_t last_cell = -1;
  bool is_side_by_side = false;  // the output is [steps, batch, directions, hidden]
};

// How the gates lie: unit by unit in panels, of which the last may be filled up with zeros.
struct LstmOrder {
  explicit LstmOrder(int64_t hidden);

  int64_t units = 0;  // of a panel
  int64_t panels = 0;
  int64_t product_panel = 0;  // columns that one call of a product takes

  int64_t state_row() const { return panels * units; }
  int64_t columns() const { return kLstmGates * state_row(); }
  // Of which columns() is a multiple.
  int64_t product_panels() const { return columns() / product_panel; }

  // Where ONNX has the row of weights for `column`; -1: it is there to fill up.
  int64_t onnx_row(int64_t column, int64_t hidden) const;
};

// Of [directions, gates * hidden, features], as the product of the input by it reads it.
plugin::Pack lstm_weights_pack(const LstmSizes& sizes);

// Of [directions, gates * hidden, hidden], as LstmStep::weights for each direction.
plugin::Pack lstm_recurrent_pack(const LstmSizes& sizes);

// Of [directions, 2 * gates * hidden]: those of input and state added, in the order of the sums.
plugin::Pack lstm_bias_pack(const LstmSizes& sizes);

int64_t lstm_workspace_bytes(const LstmSizes& sizes);

std::unique_ptr<plugin::Kernel> make_lstm_kernel(const LstmSizes& sizes, const LstmPorts& ports);

}  // namespace tessera::native
