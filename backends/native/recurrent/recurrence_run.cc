// Runs a recurrent op: one matrix product computes the contribution of the inputs to the gates of
// many steps, then the steps run one after the other. Directions and sequences are independent, so
// each thread takes some of them through all steps; if there are too few, threads share each step.
#include <algorithm>

#include "base/divide_up.h"
#include "base/element_type.h"
#include "base/grain.h"
#include "base/shared_steps.h"
#include "matmul/gemm_kernels.h"
#include "recurrent/recurrence.h"
#include "recurrent/recurrence_kernels.h"

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
int64_t chunk_steps(const RecurrentSizes& sizes, const GateLayout& gate_layout) {
  const int64_t step_bytes = sizes.directions * sizes.batch * gate_layout.columns() * kFloatBytes;
  const int64_t min_steps = divide_up(kRowBlock, sizes.batch);
  return std::min(sizes.steps, std::max(min_steps, kChunkBytes / step_bytes));
}

// The workspace: sums of a chunk of steps, states of two steps, cells.
struct Workspace {
  Workspace(const RecurrentSizes& sizes, const GateLayout& gate_layout)
      : chunk(chunk_steps(sizes, gate_layout)),
        sums(chunk * sizes.directions * sizes.batch * gate_layout.columns()),
        state(sizes.directions * sizes.batch * gate_layout.state_row()) {}

  int64_t chunk = 0;  // steps
  int64_t sums = 0;
  int64_t state = 0;
  int64_t floats() const { return sums + 3 * state; }
};

// Built for the weights; a run has as many steps and sequences as its buffers.
class RecurrentKernel : public plugin::Kernel {
 public:
  RecurrentKernel(const RecurrentSizes& sizes, const RecurrentPorts& ports)
      : sizes_(sizes),
        ports_(ports),
        gate_layout_(sizes),
        loops_(find_recurrent_loops(sizes.cell)),
        gemm_loops_(find_gemm_loops()) {}

  int64_t workspace_bytes() const override { return recurrent_workspace_bytes(sizes_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const auto read = [&](int32_t port) {
      return port < 0 ? nullptr : inputs[static_cast<size_t>(port)].as<const float>();
    };
    const auto written = [&](int32_t port) {
      return port < 0 ? nullptr : outputs[static_cast<size_t>(port)].as<float>();
    };
    const RecurrentSizes sizes = ports_.sizes_of(inputs, sizes_);
    const Workspace workspace(sizes, gate_layout_);
    auto* sums = static_cast<float*>(context.workspace());
    Run run = {.sizes = sizes,
               .input = read(ports_.input),
               .weights = read(ports_.weights),
               .recurrent = read(ports_.recurrent),
               .bias = read(ports_.bias),
               .sums = sums,
               .states = {sums + workspace.sums, sums + workspace.sums + workspace.state},
               .cells = sums + workspace.sums + 2 * workspace.state,
               .output = written(ports_.output)};
    load_state(sizes, read(ports_.initial_state), run.states[0]);
    std::fill_n(run.states[1], workspace.state, 0.0F);
    load_state(sizes, read(ports_.initial_cell), run.cells);
    for (int64_t first = 0; first < sizes.steps; first += workspace.chunk) {
      const int64_t count = std::min(workspace.chunk, sizes.steps - first);
      add_inputs(context, run, first, count);
      advance(context, run, first, count);
    }
    store_state(sizes, run.states[sizes.steps % 2], written(ports_.last_state));
    store_state(sizes, run.cells, written(ports_.last_cell));
  }

 private:
  struct Run {
    RecurrentSizes sizes;
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
  int64_t first_time(const RecurrentSizes& sizes, int64_t direction, int64_t first,
                     int64_t count) const {
    return runs_back(direction) ? sizes.steps - first - count : first;
  }

  // Loads states from [directions, batch, hidden]; zeros if there are none.
  void load_state(const RecurrentSizes& sizes, const float* from, float* to) const {
    const int64_t row = gate_layout_.state_row();
    const int64_t lines = sizes.directions * sizes.batch;
    std::fill_n(to, lines * row, 0.0F);
    if (from == nullptr) return;
    for (int64_t line = 0; line < lines; ++line) {
      std::copy_n(from + line * sizes.hidden, sizes.hidden, to + line * row);
    }
  }

  void store_state(const RecurrentSizes& sizes, const float* from, float* to) const {
    if (to == nullptr) return;
    for (int64_t line = 0; line < sizes.directions * sizes.batch; ++line) {
      std::copy_n(from + line * gate_layout_.state_row(), sizes.hidden, to + line * sizes.hidden);
    }
  }

  // sums = input * weights + bias, for `count` steps of all directions.
  void add_inputs(RunContext& context, const Run& run, int64_t first, int64_t count) const {
    const RecurrentSizes& sizes = run.sizes;
    const int64_t rows = count * sizes.batch;
    const int64_t blocks = divide_up(rows, kRowBlock);
    const int64_t panels = gate_layout_.gemm_panels();
    const double flops = 2.0 * static_cast<double>(std::min(rows, kRowBlock)) *
                         static_cast<double>(gate_layout_.gemm_panel * sizes.features);
    const int64_t grain = static_cast<int64_t>(kGrainFlops / flops) + 1;
    context.parallel_for(
        sizes.directions * panels * blocks, grain, [&](int64_t begin, int64_t end) {
          for (int64_t index = begin; index < end; ++index) {
            const int64_t direction = index / blocks / panels;
            const int64_t row = index % blocks * kRowBlock;
            const int64_t column = index / blocks % panels * gate_layout_.gemm_panel;
            const int64_t time = first_time(sizes, direction, first, count);
            GemmBlock part = {.left_row_stride = sizes.features,
                              .right_depth_stride = gate_layout_.gemm_panel,
                              .rows = std::min(kRowBlock, rows - row),
                              .columns = gate_layout_.gemm_panel,
                              .depth = sizes.features,
                              .to_row_stride = gate_layout_.columns()};
            part.left = run.input + (time * sizes.batch + row) * sizes.features;
            part.right =
                run.weights + (direction * gate_layout_.columns() + column) * sizes.features;
            part.to = run.sums + (direction * rows + row) * gate_layout_.columns() + column;
            if (run.bias != nullptr) {
              part.epilogue.addend =
                  run.bias + direction * gate_layout_.bias_row(sizes.cell) + column;
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
  static Sequences sequences_of(const RecurrentSizes& sizes, int64_t index, int64_t parts) {
    const int64_t part = index % parts;
    return {index / parts, part * sizes.batch / parts, (part + 1) * sizes.batch / parts};
  }

  // Advances all directions by `count` steps, of which the first has the number `first`.
  void advance(RunContext& context, const Run& run, int64_t first, int64_t count) const {
    const RecurrentSizes& sizes = run.sizes;
    const int64_t threads = std::max(context.threads(), 1);
    const int64_t parts = std::min(sizes.batch, divide_up(threads, sizes.directions));
    const int64_t pieces = sizes.directions * parts;
    if (pieces == 0) return;
    const int64_t weight_bytes = gate_layout_.gate_columns() * sizes.hidden * kFloatBytes;
    const int64_t shares = std::min(
        {gate_layout_.panels, divide_up(threads, pieces), SharedSteps::kMaxShares / pieces});
    if (shares < 2 || weight_bytes < kSharedStepBytes) {
      context.parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const Sequences sequences = sequences_of(sizes, piece, parts);
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
          run_step(run, sequences_of(sizes, taken / shares, parts), first, count, step,
                   share * gate_layout_.panels / shares,
                   (share + 1) * gate_layout_.panels / shares);
        });
      }
    });
  }

  // Runs step number `step` of a chunk, for panels [begin, end).
  void run_step(const Run& run, const Sequences& sequences, int64_t first, int64_t count,
                int64_t step, int64_t begin, int64_t end) const {
    const RecurrentSizes& sizes = run.sizes;
    const int64_t direction = sequences.direction;
    const int64_t in_chunk = runs_back(direction) ? count - 1 - step : step;
    const int64_t time = first_time(sizes, direction, first, count) + in_chunk;
    const int64_t row = direction * sizes.batch + sequences.begin;
    const int64_t state = row * gate_layout_.state_row();
    const auto is_odd = static_cast<size_t>((first + step) % 2);
    RecurrentStep part = {.sums_row = gate_layout_.columns(),
                          .state_row = gate_layout_.state_row(),
                          .rows = sequences.end - sequences.begin,
                          .hidden = sizes.hidden,
                          .first_panel = begin,
                          .end_panel = end};
    const int64_t sum_row = (direction * count + in_chunk) * sizes.batch + sequences.begin;
    part.sums = run.sums + sum_row * gate_layout_.columns();
    part.weights = run.recurrent + direction * gate_layout_.gate_columns() * sizes.hidden;
    if (sizes.cell == RecurrentCell::Gru && run.bias != nullptr) {
      part.hidden_bias =
          run.bias + direction * gate_layout_.bias_row(sizes.cell) + gate_layout_.columns();
    }
    part.state = run.states[is_odd] + state;
    part.next = run.states[1 - is_odd] + state;
    part.cell = run.cells + state;
    if (run.output != nullptr) {
      const bool is_side = ports_.is_side_by_side;
      const int64_t line =
          is_side ? (time * sizes.batch + sequences.begin) * sizes.directions + direction
                  : (time * sizes.directions + direction) * sizes.batch + sequences.begin;
      part.output = run.output + line * sizes.hidden;
      part.output_row = (is_side ? sizes.directions : 1) * sizes.hidden;
    }
    loops_.advance(part);
  }

  RecurrentSizes sizes_;  // for which it was proposed
  RecurrentPorts ports_;
  GateLayout gate_layout_;
  RecurrentLoops loops_;
  GemmLoops gemm_loops_;
};

}  // namespace

int64_t recurrent_workspace_bytes(const RecurrentSizes& sizes) {
  return Workspace(sizes, GateLayout(sizes)).floats() * kFloatBytes;
}

std::unique_ptr<plugin::Kernel> make_recurrent_kernel(const RecurrentSizes& sizes,
                                                      const RecurrentPorts& ports) {
  return std::make_unique<RecurrentKernel>(sizes, ports);
}

}  // namespace tessera::native
