// Runs an LSTM: one matrix product computes the contribution of the inputs to the gates of many
// steps, then the steps run one after the other. Directions and sequences are independent, so each
// thread takes some of them through all steps; if there are too few, threads share each step.
#include <algorithm>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_steps.h"
#include "matmul/gemm_kernels.h"
#include "recurrent/lstm.h"
#include "recurrent/lstm_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::RunContext;

namespace {

// The size of the sums that are computed at a time: large enough for whole blocks of matrix
// products, small enough to stay in a cache until the steps read them.
constexpr int64_t kChunkBytes = 2 * 1024 * 1024;

// Rows that are multiplied with a panel of weights before the next ones; a multiple of the rows
// that the loops hold in registers.
constexpr int64_t kRowBlock = 96;

// Threads share each step only if one thread would have more weights to read than this, which takes
// about as long as waiting for the other threads a few times.
constexpr int64_t kSharedStepBytes = 128 * 1024;

// Steps whose sums are computed at a time.
int64_t chunk_steps(const LstmSizes& sizes, const LstmGateLayout& gate_layout) {
  const int64_t step_bytes = sizes.directions * sizes.batch * gate_layout.columns() * kFloatBytes;
  const int64_t min_steps = divide_up(kRowBlock, sizes.batch);
  return std::min(sizes.steps, std::max(min_steps, kChunkBytes / step_bytes));
}

// The workspace: sums of a chunk of steps, states of two steps, cells.
struct Workspace {
  Workspace(const LstmSizes& sizes, const LstmGateLayout& gate_layout)
      : sums(chunk_steps(sizes, gate_layout) * sizes.directions * sizes.batch *
             gate_layout.columns()),
        state(sizes.directions * sizes.batch * gate_layout.state_row()) {}

  int64_t sums = 0;
  int64_t state = 0;
  int64_t floats() const { return sums + 3 * state; }
};

class LstmKernel : public plugin::Kernel {
 public:
  LstmKernel(const LstmSizes& sizes, const LstmPorts& ports)
      : sizes_(sizes),
        ports_(ports),
        gate_layout_(sizes.hidden),
        loops_(find_lstm_loops()),
        gemm_loops_(find_gemm_loops()),
        workspace_(sizes, gate_layout_) {}

  int64_t workspace_bytes() const override { return workspace_.floats() * kFloatBytes; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const auto read = [&](int32_t port) {
      return port < 0 ? nullptr : inputs[static_cast<size_t>(port)].as<const float>();
    };
    const auto written = [&](int32_t port) {
      return port < 0 ? nullptr : outputs[static_cast<size_t>(port)].as<float>();
    };
    auto* sums = static_cast<float*>(context.workspace());
    Run run = {.input = read(ports_.input),
               .weights = read(ports_.weights),
               .recurrent = read(ports_.recurrent),
               .bias = read(ports_.bias),
               .sums = sums,
               .states = {sums + workspace_.sums, sums + workspace_.sums + workspace_.state},
               .cells = sums + workspace_.sums + 2 * workspace_.state,
               .output = written(ports_.output)};
    load_state(read(ports_.initial_state), run.states[0]);
    std::fill_n(run.states[1], workspace_.state, 0.0F);
    load_state(read(ports_.initial_cell), run.cells);
    const int64_t chunk = chunk_steps(sizes_, gate_layout_);
    for (int64_t first = 0; first < sizes_.steps; first += chunk) {
      const int64_t count = std::min(chunk, sizes_.steps - first);
      add_inputs(context, run, first, count);
      advance(context, run, first, count);
    }
    store_state(run.states[sizes_.steps % 2], written(ports_.last_state));
    store_state(run.cells, written(ports_.last_cell));
  }

 private:
  struct Run {
    const float* input = nullptr;
    const float* weights = nullptr;
    const float* recurrent = nullptr;
    const float* bias = nullptr;
    float* sums = nullptr;  // of a chunk: [directions, steps in order of time, batch, columns]
    float* states[2] = {};  // of even and odd steps: [directions, batch, state_row]
    float* cells = nullptr;
    float* output = nullptr;
  };

  bool runs_back(int64_t direction) const { return direction == 1 || sizes_.is_reverse; }

  // The first one in time of the `count` steps that a direction takes from its step number `first`
  // on.
  int64_t first_time(int64_t direction, int64_t first, int64_t count) const {
    return runs_back(direction) ? sizes_.steps - first - count : first;
  }

  // Loads states from [directions, batch, hidden]; zeros if there are none.
  void load_state(const float* from, float* to) const {
    const int64_t row = gate_layout_.state_row();
    std::fill_n(to, workspace_.state, 0.0F);
    if (from == nullptr) return;
    for (int64_t line = 0; line < sizes_.directions * sizes_.batch; ++line) {
      std::copy_n(from + line * sizes_.hidden, sizes_.hidden, to + line * row);
    }
  }

  void store_state(const float* from, float* to) const {
    if (to == nullptr) return;
    for (int64_t line = 0; line < sizes_.directions * sizes_.batch; ++line) {
      std::copy_n(from + line * gate_layout_.state_row(), sizes_.hidden, to + line * sizes_.hidden);
    }
  }

  // sums = input * weights + bias, for `count` steps of all directions.
  void add_inputs(RunContext& context, const Run& run, int64_t first, int64_t count) const {
    const int64_t rows = count * sizes_.batch;
    const int64_t blocks = divide_up(rows, kRowBlock);
    const int64_t panels = gate_layout_.gemm_panels();
    const double flops = 2.0 * static_cast<double>(std::min(rows, kRowBlock)) *
                         static_cast<double>(gate_layout_.gemm_panel * sizes_.features);
    const int64_t grain = static_cast<int64_t>(kGrainFlops / flops) + 1;
    context.parallel_for(
        sizes_.directions * panels * blocks, grain, [&](int64_t begin, int64_t end) {
          for (int64_t index = begin; index < end; ++index) {
            const int64_t direction = index / blocks / panels;
            const int64_t row = index % blocks * kRowBlock;
            const int64_t column = index / blocks % panels * gate_layout_.gemm_panel;
            const int64_t time = first_time(direction, first, count);
            GemmBlock part = {.left_row_stride = sizes_.features,
                              .right_depth_stride = gate_layout_.gemm_panel,
                              .rows = std::min(kRowBlock, rows - row),
                              .columns = gate_layout_.gemm_panel,
                              .depth = sizes_.features,
                              .to_row_stride = gate_layout_.columns()};
            part.left = run.input + (time * sizes_.batch + row) * sizes_.features;
            part.right =
                run.weights + (direction * gate_layout_.columns() + column) * sizes_.features;
            part.to = run.sums + (direction * rows + row) * gate_layout_.columns() + column;
            if (run.bias != nullptr) {
              part.epilogue.addend = run.bias + direction * gate_layout_.columns() + column;
              part.epilogue.addend_column_stride = 1;
            }
            gemm_loops_.padded(part);
          }
        });
  }

  // Sequences [begin, end) of a direction.
  struct Sequences {
    int64_t direction = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  // Part `index` of `parts` for each direction.
  Sequences sequences_of(int64_t index, int64_t parts) const {
    const int64_t part = index % parts;
    return {index / parts, part * sizes_.batch / parts, (part + 1) * sizes_.batch / parts};
  }

  // Advances all directions by `count` steps, of which the first has the number `first`.
  void advance(RunContext& context, const Run& run, int64_t first, int64_t count) const {
    const int64_t threads = std::max(context.threads(), 1);
    const int64_t parts = std::min(sizes_.batch, divide_up(threads, sizes_.directions));
    const int64_t pieces = sizes_.directions * parts;
    if (pieces == 0) return;
    const int64_t weight_bytes = gate_layout_.columns() * sizes_.hidden * kFloatBytes;
    const int64_t shares = std::min(
        {gate_layout_.panels, divide_up(threads, pieces), SharedSteps::kMaxShares / pieces});
    if (shares < 2 || weight_bytes < kSharedStepBytes) {
      context.parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const Sequences sequences = sequences_of(piece, parts);
          for (int64_t step = 0; step < count; ++step) {
            run_step(run, sequences, first, count, step, 0, gate_layout_.panels);
          }
        }
      });
      return;
    }
    SharedSteps steps(pieces * shares);
    context.parallel_for(pieces * shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        steps.run(index, count, [&](int64_t step, int64_t taken) {
          const int64_t share = taken % shares;
          run_step(run, sequences_of(taken / shares, parts), first, count, step,
                   share * gate_layout_.panels / shares,
                   (share + 1) * gate_layout_.panels / shares);
        });
      }
    });
  }

  // Runs step number `step` of a chunk, for panels [begin, end).
  void run_step(const Run& run, const Sequences& sequences, int64_t first, int64_t count,
                int64_t step, int64_t begin, int64_t end) const {
    const int64_t direction = sequences.direction;
    const int64_t in_chunk = runs_back(direction) ? count - 1 - step : step;
    const int64_t time = first_time(direction, first, count) + in_chunk;
    const int64_t row = direction * sizes_.batch + sequences.begin;
    const int64_t state = row * gate_layout_.state_row();
    const auto is_odd = static_cast<size_t>((first + step) % 2);
    LstmStep part = {.sums_row = gate_layout_.columns(),
                     .state_row = gate_layout_.state_row(),
                     .rows = sequences.end - sequences.begin,
                     .hidden = sizes_.hidden,
                     .first_panel = begin,
                     .end_panel = end};
    const int64_t sum_row = (direction * count + in_chunk) * sizes_.batch + sequences.begin;
    part.sums = run.sums + sum_row * gate_layout_.columns();
    part.weights = run.recurrent + direction * gate_layout_.columns() * sizes_.hidden;
    part.state = run.states[is_odd] + state;
    part.next = run.states[1 - is_odd] + state;
    part.cell = run.cells + state;
    if (run.output != nullptr) {
      const bool is_side = ports_.is_side_by_side;
      const int64_t line =
          is_side ? (time * sizes_.batch + sequences.begin) * sizes_.directions + direction
                  : (time * sizes_.directions + direction) * sizes_.batch + sequences.begin;
      part.output = run.output + line * sizes_.hidden;
      part.output_row = (is_side ? sizes_.directions : 1) * sizes_.hidden;
    }
    loops_.advance(part);
  }

  LstmSizes sizes_;
  LstmPorts ports_;
  LstmGateLayout gate_layout_;
  LstmLoops loops_;
  GemmLoops gemm_loops_;
  Workspace workspace_;
};

}  // namespace

int64_t lstm_workspace_bytes(const LstmSizes& sizes) {
  return Workspace(sizes, LstmGateLayout(sizes.hidden)).floats() * kFloatBytes;
}

std::unique_ptr<plugin::Kernel> make_lstm_kernel(const LstmSizes& sizes, const LstmPorts& ports) {
  return std::make_unique<LstmKernel>(sizes, ports);
}

}  // namespace tessera::native
