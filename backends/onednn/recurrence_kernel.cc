// Runs an LSTM, GRU or RNN of oneDNN. The library stores both directions of a step side by side,
// ONNX one after the other.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "recurrence.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Buffer;
using plugin::RunContext;

namespace {

constexpr int64_t kCopyGrain = 64;  // rows

int64_t aligned(int64_t bytes) {
  return (bytes + TESSERA_ALIGNMENT_BYTES - 1) / TESSERA_ALIGNMENT_BYTES * TESSERA_ALIGNMENT_BYTES;
}

// The workspace holds the scratchpad of the library, both directions of all steps, two states for
// unused outputs, and one of zeros.
class RecurrenceKernel : public plugin::Kernel {
 public:
  RecurrenceKernel(const dnnl::rnn_primitive_desc_base& description, const Cell& cell,
                   const RecurrenceSizes& sizes, const RecurrencePorts& ports)
      : description_(description),
        primitive_(description),
        cell_(cell),
        sizes_(sizes),
        ports_(ports) {
    // The library requires a bias.
    if (ports.bias < 0) no_bias_.resize(description.bias_desc().get_size() / sizeof(float));
  }

  int64_t workspace_bytes() const override {
    return recurrence_workspace_bytes(description_, sizes_);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Buffers buffers = buffers_of(context);
    std::unordered_map<int, memory> arguments;
    const auto set = [&](int argument, const memory::desc& desc, void* data) {
      arguments.try_emplace(argument, desc, description_.get_engine(), data);
    };
    const auto read = [&](int32_t port) { return inputs[static_cast<size_t>(port)].data; };
    const auto written = [&](int32_t port, void* otherwise) {
      void* data = port < 0 ? nullptr : outputs[static_cast<size_t>(port)].data;
      return data == nullptr ? otherwise : data;
    };
    const bool is_direct = sizes_.directions == 1 || ports_.is_side_by_side;
    void* layer = is_direct ? written(ports_.output, buffers.layer) : buffers.layer;
    set(DNNL_ARG_SRC_LAYER, description_.src_layer_desc(), read(ports_.input));
    set(DNNL_ARG_WEIGHTS_LAYER, description_.weights_layer_desc(), read(ports_.weights));
    set(DNNL_ARG_WEIGHTS_ITER, description_.weights_iter_desc(), read(ports_.recurrent));
    set(DNNL_ARG_BIAS, description_.bias_desc(),
        ports_.bias < 0 ? no_bias_.data() : read(ports_.bias));
    if (ports_.initial_state >= 0 || ports_.initial_cell >= 0) {
      std::fill_n(buffers.zeros, sizes_.state_elements(), 0.0F);
      const auto state = [&](int32_t port) { return port < 0 ? buffers.zeros : read(port); };
      set(DNNL_ARG_SRC_ITER, description_.src_iter_desc(), state(ports_.initial_state));
      if (cell_.has_cell_state) {
        set(DNNL_ARG_SRC_ITER_C, description_.src_iter_c_desc(), state(ports_.initial_cell));
      }
    }
    set(DNNL_ARG_DST_LAYER, description_.dst_layer_desc(), layer);
    set(DNNL_ARG_DST_ITER, description_.dst_iter_desc(), written(ports_.last_state, buffers.state));
    if (cell_.has_cell_state) {
      set(DNNL_ARG_DST_ITER_C, description_.dst_iter_c_desc(),
          written(ports_.last_cell, buffers.cell));
    }
    set(DNNL_ARG_SCRATCHPAD, description_.scratchpad_desc(), context.workspace());
    dnnl::stream stream(description_.get_engine());
    primitive_.execute(stream, arguments);
    stream.wait();
    void* output = written(ports_.output, nullptr);
    if (!is_direct && output != nullptr) {
      part_directions(context, static_cast<const float*>(layer), static_cast<float*>(output));
    }
  }

 private:
  struct Buffers {
    float* layer = nullptr;
    float* state = nullptr;
    float* cell = nullptr;
    float* zeros = nullptr;
  };

  Buffers buffers_of(RunContext& context) const {
    char* position = static_cast<char*>(context.workspace()) +
                     aligned(static_cast<int64_t>(description_.scratchpad_desc().get_size()));
    const auto take = [&](int64_t elements) {
      float* taken = reinterpret_cast<float*>(position);
      position += aligned(elements * static_cast<int64_t>(sizeof(float)));
      return taken;
    };
    float* layer = take(sizes_.layer_elements());
    float* state = take(sizes_.state_elements());
    float* cell = take(sizes_.state_elements());
    return {layer, state, cell, take(sizes_.state_elements())};
  }

  // [steps, batch, directions, hidden] to [steps, directions, batch, hidden].
  void part_directions(RunContext& context, const float* from, float* to) const {
    const int64_t rows = sizes_.steps * sizes_.batch * sizes_.directions;
    context.parallel_for(rows, kCopyGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t sequence = row % sizes_.batch;
        const int64_t direction = row / sizes_.batch % sizes_.directions;
        const int64_t step = row / (sizes_.batch * sizes_.directions);
        const int64_t source = (step * sizes_.batch + sequence) * sizes_.directions + direction;
        std::copy_n(from + source * sizes_.hidden, sizes_.hidden, to + row * sizes_.hidden);
      }
    });
  }

  dnnl::rnn_primitive_desc_base description_;
  dnnl::primitive primitive_;
  Cell cell_;
  RecurrenceSizes sizes_;
  RecurrencePorts ports_;
  std::vector<float> no_bias_;  // zeros
};

}  // namespace

int64_t recurrence_workspace_bytes(const dnnl::rnn_primitive_desc_base& description,
                                   const RecurrenceSizes& sizes) {
  const auto size = static_cast<int64_t>(sizeof(float));
  return aligned(static_cast<int64_t>(description.scratchpad_desc().get_size())) +
         aligned(sizes.layer_elements() * size) + 3 * aligned(sizes.state_elements() * size);
}

std::unique_ptr<plugin::Kernel> make_recurrence_kernel(
    const dnnl::rnn_primitive_desc_base& description, const Cell& cell,
    const RecurrenceSizes& sizes, const RecurrencePorts& ports) {
  return std::make_unique<RecurrenceKernel>(description, cell, sizes, ports);
}

}  // namespace tessera::onednn
