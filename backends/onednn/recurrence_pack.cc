// Packs weights and biases in the order and format of oneDNN.
#include <algorithm>
#include <vector>

#include "base/formats.h"
#include "recurrence.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Buffer;
using plugin::RunContext;

namespace {

// Weights with the gates in the order of oneDNN, as [1, directions, inputs, gates, hidden].
memory::desc stored_weights(const Cell& cell, const RecurrenceSizes& sizes, int64_t inputs) {
  const int64_t gate = sizes.hidden * inputs;
  const int64_t gates = cell.gate_count();
  return {{1, sizes.directions, inputs, gates, sizes.hidden},
          memory::data_type::f32,
          memory::dims{sizes.directions * gates * gate, gates * gate, 1, gate, inputs}};
}

void pack_weights(const dnnl::engine& engine, const Cell& cell, const RecurrenceSizes& sizes,
                  int64_t inputs, const memory::desc& wanted, const Buffer& from, void* to) {
  const int64_t gate = sizes.hidden * inputs;
  const int64_t gates = cell.gate_count();
  std::vector<float> ordered(static_cast<size_t>(sizes.directions * gates * gate));
  auto next = ordered.begin();
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    for (const int64_t onnx_gate : cell.gates) {
      next = std::copy_n(from.as<float>() + (direction * gates + onnx_gate) * gate, gate, next);
    }
  }
  memory source(stored_weights(cell, sizes, inputs), engine, ordered.data());
  memory target(wanted, engine, to);
  dnnl::stream stream(engine);
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

void pack_bias(const Cell& cell, const RecurrenceSizes& sizes, const Buffer& from, void* to) {
  const int64_t half = cell.gate_count() * sizes.hidden;
  auto* target = static_cast<float*>(to);
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    for (const BiasRow& row : cell.biases) {
      const float* of_input = from.as<float>() + direction * 2 * half + row.gate * sizes.hidden;
      const float* of_state = of_input + half;
      for (int64_t unit = 0; unit < sizes.hidden; ++unit) {
        *target++ = (row.has_input ? of_input[unit] : 0) + (row.has_state ? of_state[unit] : 0);
      }
    }
  }
}

}  // namespace

plugin::Pack recurrence_weights_pack(const dnnl::engine& engine, const Cell& cell,
                                     const RecurrenceSizes& sizes, int64_t inputs,
                                     const memory::desc& wanted) {
  return {std::string("onednn:") + cell.name + ":" + format_text(wanted).value(),
          static_cast<int64_t>(wanted.get_size()),
          [engine, cell, sizes, inputs, wanted](RunContext&, const Buffer& from, void* to) {
            pack_weights(engine, cell, sizes, inputs, wanted, from, to);
          }};
}

plugin::Pack recurrence_bias_pack(const Cell& cell, const RecurrenceSizes& sizes) {
  const int64_t elements = sizes.directions * cell.bias_count() * sizes.hidden;
  return {std::string("onednn:") + cell.name + ":bias",
          elements * static_cast<int64_t>(sizeof(float)),
          [cell, sizes](RunContext&, const Buffer& from, void* to) {
            pack_bias(cell, sizes, from, to);
          }};
}

}  // namespace tessera::onednn
