// Packs weights and biases of an LSTM in the order in which its steps read them.
#include <string>

#include "base/element_type.h"
#include "matmul/gemm_kernels.h"
#include "recurrent/lstm.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// Packs [gates * hidden, depth] into panels of `panel` columns each: [panels, depth, panel].
void pack_panels(const LstmGateLayout& gate_layout, int64_t hidden, int64_t depth, int64_t panel,
                 const float* from, float* to) {
  for (int64_t column = 0; column < gate_layout.columns(); ++column) {
    const int64_t row = gate_layout.onnx_row(column, hidden);
    float* target = to + column / panel * panel * depth + column % panel;
    for (int64_t position = 0; position < depth; ++position) {
      target[position * panel] = row < 0 ? 0 : from[row * depth + position];
    }
  }
}

plugin::Pack panels_pack(const LstmSizes& sizes, int64_t depth, int64_t panel) {
  const LstmGateLayout gate_layout(sizes.hidden);
  plugin::Pack pack;
  pack.id = "lstm" + std::to_string(gate_layout.units) + "_panels" + std::to_string(panel) + "_" +
            std::to_string(sizes.hidden) + "_" + std::to_string(depth);
  pack.bytes = sizes.directions * gate_layout.columns() * depth * kFloatBytes;
  pack.pack = [=](RunContext& context, const Buffer& from, void* to) {
    context.parallel_for(sizes.directions, 1, [&](int64_t begin, int64_t end) {
      for (int64_t direction = begin; direction < end; ++direction) {
        pack_panels(gate_layout, sizes.hidden, depth, panel,
                    from.as<const float>() + direction * kLstmGates * sizes.hidden * depth,
                    static_cast<float*>(to) + direction * gate_layout.columns() * depth);
      }
    });
  };
  return pack;
}

}  // namespace

LstmGateLayout::LstmGateLayout(int64_t hidden)
    : units(find_lstm_loops().units),
      panels((hidden + units - 1) / units),
      gemm_panel(find_gemm_loops().panel) {}

int64_t LstmGateLayout::onnx_row(int64_t column, int64_t hidden) const {
  const int64_t unit = column / (kLstmGates * units) * units + column % units;
  const int64_t gate = column / units % kLstmGates;
  return unit < hidden ? gate * hidden + unit : -1;
}

plugin::Pack lstm_weights_pack(const LstmSizes& sizes) {
  return panels_pack(sizes, sizes.features, LstmGateLayout(sizes.hidden).gemm_panel);
}

plugin::Pack lstm_recurrent_pack(const LstmSizes& sizes) {
  return panels_pack(sizes, sizes.hidden, kLstmGates * LstmGateLayout(sizes.hidden).units);
}

plugin::Pack lstm_bias_pack(const LstmSizes& sizes) {
  const LstmGateLayout gate_layout(sizes.hidden);
  plugin::Pack pack;
  pack.id = "lstm" + std::to_string(gate_layout.units) + "_bias" + std::to_string(sizes.hidden);
  pack.bytes = sizes.directions * gate_layout.columns() * kFloatBytes;
  pack.pack = [=](RunContext&, const Buffer& from, void* to) {
    const int64_t half = kLstmGates * sizes.hidden;
    auto* target = static_cast<float*>(to);
    for (int64_t direction = 0; direction < sizes.directions; ++direction) {
      const float* biases = from.as<const float>() + direction * 2 * half;
      for (int64_t column = 0; column < gate_layout.columns(); ++column) {
        const int64_t row = gate_layout.onnx_row(column, sizes.hidden);
        *target++ = row < 0 ? 0 : biases[row] + biases[half + row];
      }
    }
  };
  return pack;
}

}  // namespace tessera::native
