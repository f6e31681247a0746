// Reductions in LLVM IR: accumulators in the loops, and their totals after them.
#pragma once

#include <string>
#include <vector>

#include "ir_writer.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// The variables of one reduction: several, so that additions need not wait for each other.
struct Accumulator {
  size_t instruction = 0;
  int32_t operation = TESSERA_EXPRESSION_REDUCE_SUM;
  int32_t data_type = TESSERA_FLOAT32;
  int lanes = 1;
  std::vector<std::string> totals;  // vectors
  // For maxima and minima of floats: 0 or a NaN for each total. The totals then have numbers only,
  // so neither chain of operations waits for the other.
  std::vector<std::string> nans;
  // For sums of float32, and of float64 if operands are float64: the rounding errors of each total,
  // or NaN as soon as a value was infinite (Knuth, The Art of Computer Programming, 4.2.2, theorem
  // B).
  std::vector<std::string> rests;
  // For sums of float32, one for each total: the sum of the few vectors since the last
  // print_block_end(). So most vectors cost one addition, and totals have few roundings.
  std::vector<std::string> blocks;
};

// An accumulator of `vectors` variables, each initialised to the reduction of no elements.
Accumulator new_accumulator(IrWriter& writer, const plugin::FusedGroup& group, size_t instruction,
                            size_t vectors, int lanes);

// Adds a vector to variable `vector`. `mask`: the lanes that count; "": all.
void print_accumulation(IrWriter& writer, const Accumulator& accumulator, size_t vector,
                        const std::string& next, const std::string& mask);

// How many vectors of each variable a block should have. Each adds up to half a unit in the last
// place, in the same direction if all elements are equal.
inline constexpr int kBlockVectors = 16;

// Adds the sums of the blocks, if there are any, to the totals.
void print_block_end(IrWriter& writer, const Accumulator& accumulator);

// The values of the variables, each lane for itself.
std::vector<std::string> print_totals(IrWriter& writer, const Accumulator& accumulator);

// All lanes of all variables as one scalar.
std::string print_total(IrWriter& writer, const Accumulator& accumulator);

}  // namespace tessera::jit
