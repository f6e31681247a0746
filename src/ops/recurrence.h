// What LSTM, GRU and RNN share: attributes, the type rule, work, where elements lie in both
// layouts, and the walk over steps and directions. Their files add what one step computes.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"
#include "ops/recurrent_activation.h"

namespace tessera::ops {

// Inputs 0 to 4 are X, W, R, B and sequence_lens; then comes an initial value for each state.
// Output 0 is H of all steps, then comes the last value of each state.
struct RecurrentKind {
  int64_t gates = 1;                         // W is [directions, gates * hidden, features]
  int64_t states = 1;                        // H alone, or H and C
  std::span<const char* const> activations;  // of one direction, where the node names none
};

// Checks attributes and shapes and sets all outputs. Gives the length of a state, if it is known.
std::optional<Dim> infer_recurrence(InferContext& context, const RecurrentKind& kind);

// The products of input and state by their weights; gates cost little beside them.
int64_t recurrence_flops(const RecurrentKind& kind, const Node& node, std::span<const Type> inputs);

int64_t direction_count(const Node& node);

// X to initial_h, and the attributes but for the activations: what all three ops have.
std::vector<Parameter> recurrent_inputs();
std::vector<AttributeSchema> recurrent_attributes();

// The numbers of a call, and where elements lie.
struct Recurrence {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t gates = 1;
  int64_t directions = 1;
  bool is_batched = false;  // batches before steps (layout = 1)
  double clip = std::numeric_limits<double>::infinity();
  std::vector<int64_t> lengths;  // of each sequence

  bool is_running(int64_t sequence, int64_t step) const {
    return step < lengths[static_cast<size_t>(sequence)];
  }
  // Sums are clipped before a function is applied to them.
  double clipped(double sum) const;

  int64_t input_row(int64_t step, int64_t sequence) const;
  int64_t output_row(int64_t step, int64_t direction, int64_t sequence) const;
  int64_t state_row(int64_t direction, int64_t sequence) const;
};

// One direction of a call while it runs. All is kept in double.
struct Direction {
  int64_t index = 0;
  bool is_reverse = false;
  std::vector<Activation> activations;
  std::vector<double> input_bias;           // [gates * hidden], zeros where there is none
  std::vector<double> state_bias;           // as above
  std::vector<std::vector<double>> states;  // H and perhaps C, each [batch, hidden]

  // Where in time `sequence` is at step number `step`; 0 when it has ended.
  int64_t time_of(const Recurrence& shape, int64_t step, int64_t sequence) const;
};

// sums += X * W^T at one step, for all sequences: [batch, gates * hidden].
void add_input_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       int64_t step, std::vector<double>& sums);

// sums += values * R^T, of `count` gates from `first` on, for all sequences. `values` is
// [batch, hidden], `sums` [batch, gates * hidden].
void add_state_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       const std::vector<double>& values, int64_t first, int64_t count,
                       std::vector<double>& sums);

// The biases of input and state, added up.
std::vector<double> added_biases(const Direction& direction);

// Fills [batch, line.size()] with the same line for each sequence.
void repeat_line(const std::vector<double>& line, int64_t batch, std::vector<double>& target);

// Moves the states of all sequences that are still running at step number `step` one step on.
using Advance = std::function<void(int64_t step)>;

// Called once for each direction. What it gives may keep references to both arguments.
using Begin = std::function<Advance(const Recurrence& shape, Direction& direction)>;

// Computes a call. Throws InvalidArgument where sequence_lens holds a length that cannot be.
void run_recurrence(const KernelCall& call, const RecurrentKind& kind, const Begin& begin);

}  // namespace tessera::ops
