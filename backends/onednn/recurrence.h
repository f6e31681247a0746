// The parts that LSTM, GRU and RNN share: the packing of their weights, and the kernel. rnn.cc
// proposes candidates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

struct RecurrenceSizes {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t directions = 1;

  int64_t layer_elements() const { return steps * batch * directions * hidden; }
  int64_t state_elements() const { return directions * batch * hidden; }
};

// A row of biases of the library: the bias of ONNX for a gate, of the input, of the state, or their
// sum.
struct BiasRow {
  int64_t gate = 0;
  bool has_input = true;
  bool has_state = true;
};

// The parameters of one of the ops for the library.
struct Cell {
  const char* name = "";            // part of the packs' ids
  std::span<const int64_t> gates;   // for each gate of the library, its index in ONNX
  std::span<const BiasRow> biases;  // for each row of the library
  bool has_cell_state = false;      // C beside H

  int64_t gate_count() const { return static_cast<int64_t>(gates.size()); }
  int64_t bias_count() const { return static_cast<int64_t>(biases.size()); }
};

// Packs weights [directions, gates * hidden, inputs], where inputs is features or hidden, as
// `wanted`, whose format must have a text (format_text()).
plugin::Pack recurrence_weights_pack(const dnnl::engine& engine, const Cell& cell,
                                     const RecurrenceSizes& sizes, int64_t inputs,
                                     const dnnl::memory::desc& wanted);

// Packs biases [directions, 2 * gates * hidden] as [directions, bias_count, hidden].
plugin::Pack recurrence_bias_pack(const Cell& cell, const RecurrenceSizes& sizes);

// The port of each tensor of a run; -1: absent.
struct RecurrencePorts {
  int32_t input = -1;
  int32_t weights = -1;
  int32_t recurrent = -1;
  int32_t bias = -1;
  int32_t initial_state = -1;
  int32_t initial_cell = -1;
  int32_t output = -1;  // all steps
  int32_t last_state = -1;
  int32_t last_cell = -1;
  bool is_side_by_side = false;  // the output is [steps, batch, directions, hidden]
};

int64_t recurrence_workspace_bytes(const dnnl::rnn_primitive_desc_base& description,
                                   const RecurrenceSizes& sizes);

std::unique_ptr<plugin::Kernel> make_recurrence_kernel(
    const dnnl::rnn_primitive_desc_base& description, const Cell& cell,
    const RecurrenceSizes& sizes, const RecurrencePorts& ports);

}  // namespace tessera::onednn
