// Packs weights and biases of recurrent ops in the order in which its steps read them.
#include <string>

#include "base/element_type.h"
#include "matmul/gemm_kernels.h"
#include "recurrent/recurrence.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

std::string name_of(const RecurrentSizes& sizes, const GateLayout& gate_layout) {
  constexpr const char* kNames[] = {"lstm", "gru", "rnn"};  // by RecurrentCell
  return kNames[static_cast<size_t>(sizes.cell)] + std::to_string(gate_layout.units);
}

// Packs [gates * hidden, depth] into panels of `panel` columns each: [panels, depth, panel].
void pack_panels(const GateLayout& gate_layout, int64_t hidden, int64_t depth, int64_t columns,
                 int64_t panel, const float* from, float* to) {
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t row = gate_layout.onnx_row(column, hidden);
    float* target = to + column / panel * panel * depth + column % panel;
    for (int64_t position = 0; position < depth; ++position) {
      target[position * panel] = row < 0 ? 0 : from[row * depth + position];
    }
  }
}

plugin::Pack panels_pack(const RecurrentSizes& sizes, int64_t depth, int64_t columns,
                         int64_t panel) {
  const GateLayout gate_layout(sizes);
  plugin::Pack pack;
  pack.id = name_of(sizes, gate_layout) + "_panels" + std::to_string(panel) + "_" +
            std::to_string(sizes.hidden) + "_" + std::to_string(depth);
  pack.bytes = sizes.directions * columns * depth * kFloatBytes;
  pack.pack = [=](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(sizes.directions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t direction = begin; direction < end; ++direction) {
        pack_panels(gate_layout, sizes.hidden, depth, columns, panel,
                    from.as<const float>() + direction * gate_layout.gates * sizes.hidden * depth,
                    static_cast<float*>(to) + direction * columns * depth);
      }
    });
  };
  return pack;
}

}  // namespace

GateLayout::GateLayout(const RecurrentSizes& sizes)
    : gates(gates_of(sizes.cell)),
      units(find_recurrent_loops(sizes.cell).units),
      panels((sizes.hidden + units - 1) / units),
      gemm_panel(find_gemm_loops().panel) {}

int64_t GateLayout::onnx_row(int64_t column, int64_t hidden) const {
  if (column >= gate_columns()) return -1;
  const int64_t unit = column / (gates * units) * units + column % units;
  const int64_t gate = column / units % gates;
  return unit < hidden ? gate * hidden + unit : -1;
}

int64_t GateLayout::bias_row(RecurrentCell cell) const {
  return columns() + (cell == RecurrentCell::Gru ? state_row() : 0);
}

plugin::Pack recurrent_weights_pack(const RecurrentSizes& sizes) {
  const GateLayout gate_layout(sizes);
  return panels_pack(sizes, sizes.features, gate_layout.columns(), gate_layout.gemm_panel);
}

plugin::Pack recurrent_states_pack(const RecurrentSizes& sizes) {
  const GateLayout gate_layout(sizes);
  return panels_pack(sizes, sizes.hidden, gate_layout.gate_columns(),
                     gate_layout.gates * gate_layout.units);
}

plugin::Pack recurrent_bias_pack(const RecurrentSizes& sizes) {
  const GateLayout gate_layout(sizes);
  plugin::Pack pack;
  pack.id = name_of(sizes, gate_layout) + "_bias" + std::to_string(sizes.hidden);
  pack.bytes = sizes.directions * gate_layout.bias_row(sizes.cell) * kFloatBytes;
  pack.pack = [=](RunContext&, const Buffer& from, void* to) {
    const int64_t half = gate_layout.gates * sizes.hidden;
    const bool is_gru = sizes.cell == RecurrentCell::Gru;
    const int64_t hidden_gate = 2 * sizes.hidden;  // of a GRU: its first row
    auto* target = static_cast<float*>(to);
    for (int64_t direction = 0; direction < sizes.directions; ++direction) {
      const float* biases = from.as<const float>() + direction * 2 * half;
      for (int64_t column = 0; column < gate_layout.columns(); ++column) {
        const int64_t row = gate_layout.onnx_row(column, sizes.hidden);
        const bool is_apart = is_gru && row >= hidden_gate;
        *target++ = row < 0 ? 0 : is_apart ? biases[row] : biases[row] + biases[half + row];
      }
      if (!is_gru) continue;
      for (int64_t unit = 0; unit < gate_layout.state_row(); ++unit) {
        *target++ = unit < sizes.hidden ? biases[half + hidden_gate + unit] : 0;
      }
    }
  };
  return pack;
}

}  // namespace tessera::native
