// What LSTM, GRU and RNN share: attributes, the type rule, work, where elements lie in both
// layouts, and the walk over steps and directions. Their files add what one step computes.
#pragma once

#include <limits>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
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
  std::pmr::vector<int64_t> lengths;  // of each sequence

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
  std::pmr::vector<Activation> activations;
  std::pmr::vector<double> input_bias;  // [gates * hidden], zeros where there is none
  std::pmr::vector<double> state_bias;  // as above
  // H and perhaps C, each [batch, hidden].
  std::pmr::vector<std::pmr::vector<double>> states;

  // Where in time `sequence` is at step number `step`; 0 when it has ended.
  int64_t time_of(const Recurrence& shape, int64_t step, int64_t sequence) const;
};

// sums += X * W^T at one step, for all sequences: [batch, gates * hidden].
void add_input_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       int64_t step, std::span<double> sums);

// sums += values * R^T, of `count` gates from `first` on, for all sequences. `values` is
// [batch, hidden], `sums` [batch, gates * hidden].
void add_state_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       std::span<const double> values, int64_t first, int64_t count,
                       std::span<double> sums);

// Adds the bias of the state to that of the input, for ops that need only their sum.
void add_biases(Direction& direction);

// Fills [batch, line.size()] with the same line for each sequence.
void repeat_line(std::span<const double> line, std::span<double> target);

// Computes a call: run_direction(shape, direction) is called once for each direction, to call
// run_steps(). Throws InvalidArgument where sequence_lens holds a length that cannot be.
void run_recurrence(const KernelCall& call, const RecurrentKind& kind,
                    FunctionRef<void(const Recurrence& shape, Direction& direction)> run_direction);

// Walks over the steps of a direction and stores what its states become. advance(step) moves the
// states of all sequences that are still running at step number `step` one step on.
void run_steps(const KernelCall& call, const Recurrence& shape, const Direction& direction,
               FunctionRef<void(int64_t step)> advance);

}  // namespace tessera::ops
