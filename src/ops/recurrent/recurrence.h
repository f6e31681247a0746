// Shared by LSTM, GRU and RNN: attributes, type rule, work, addressing in both layouts, and the
// iteration over steps and directions. The files of the ops add the computation of one step.
#pragma once

#include <limits>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "base/threads/function_ref.h"
#include "graph/graph.h"
#include "ops/op.h"

namespace tessera::ops {

// An activation function of a recurrent node.
struct Activation {
  double (*function)(double value, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;

  double apply(double value) const { return function(value, alpha, beta); }
};

// Inputs 0 to 4 are X, W, R, B and sequence_lens, followed by an initial value per state. Output 0
// is H of all steps, followed by the last value of each state.
struct RecurrentKind {
  int64_t gates = 1;                         // W is [directions, gates * hidden, features]
  int64_t states = 1;                        // H alone, or H and C
  std::span<const char* const> activations;  // of one direction; used if the node names none
  bool has_transposed_weights = false;       // W is [directions, features, gates * hidden]
};

// Checks attributes and shapes and sets all outputs. Returns the size of a state, if it is known.
std::optional<Dim> infer_recurrence(InferContext& context, const RecurrentKind& kind);

// Counts the products of input and state with their weights; gates are negligible.
int64_t recurrence_flops(const RecurrentKind& kind, const Node& node, std::span<const Type> inputs);

int64_t direction_count(const Node& node);

// The inputs X to initial_h, and the attributes other than activations: common to all three ops.
std::vector<Parameter> recurrent_inputs();
std::vector<AttributeSchema> recurrent_attributes();

// The sizes of a call and the addressing of its tensors.
struct Recurrence {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t features = 0;
  int64_t hidden = 0;
  int64_t gates = 1;
  int64_t directions = 1;
  bool is_batched = false;  // batch axis before step axis (layout = 1)
  double clip = std::numeric_limits<double>::infinity();
  std::pmr::vector<int64_t> lengths;  // the length of each sequence

  bool is_running(int64_t sequence, int64_t step) const {
    return step < lengths[static_cast<size_t>(sequence)];
  }
  // Clips a sum before an activation function is applied.
  double clipped(double sum) const;

  int64_t input_row(int64_t step, int64_t sequence) const;
  int64_t output_row(int64_t step, int64_t direction, int64_t sequence) const;
  int64_t state_row(int64_t direction, int64_t sequence) const;
};

// The state of one direction during a call, in double.
struct Direction {
  int64_t index = 0;
  bool is_reverse = false;
  std::pmr::vector<Activation> activations;
  std::pmr::vector<double> input_bias;  // [gates * hidden]; zeros if there is none
  std::pmr::vector<double> state_bias;  // as above
  // H and, for LSTM, C; each [batch, hidden].
  std::pmr::vector<std::pmr::vector<double>> states;

  // The time index of `sequence` at step number `step`; 0 if the sequence has ended.
  int64_t time_of(const Recurrence& shape, int64_t step, int64_t sequence) const;
};

// sums += X * W^T at one step, for all sequences. `sums` is [batch, gates * hidden].
void add_input_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       int64_t step, std::span<double> sums);

// sums += values * R^T, for `count` gates from `first` on, for all sequences. `values` is [batch,
// hidden], `sums` [batch, gates * hidden].
void add_state_product(const KernelCall& call, const Recurrence& shape, const Direction& direction,
                       std::span<const double> values, int64_t first, int64_t count,
                       std::span<double> sums);

// Adds the state's bias to the input's bias, for ops that need only their sum.
void add_biases(Direction& direction);

// Fills `target`, [batch, line.size()], with copies of `line`.
void repeat_line(std::span<const double> line, std::span<double> target);

// Runs a call: run_direction(shape, direction) is called once per direction and has to call
// run_steps(). Throws InvalidArgument if sequence_lens holds an impossible length.
void run_recurrence(const KernelCall& call, const RecurrentKind& kind,
                    FunctionRef<void(const Recurrence& shape, Direction& direction)> run_direction);

// Iterates over the steps of a direction and stores the resulting states. advance(step) advances
// the states of all sequences that are still running at step number `step`.
void run_steps(const KernelCall& call, const Recurrence& shape, const Direction& direction,
               FunctionRef<void(int64_t step)> advance);

}  // namespace tessera::ops
