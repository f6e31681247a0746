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
  // Of maxima and minima of floats: 0 or a NaN for each total, which is of numbers only then. So
  // neither waits for the other.
  std::vector<std::string> nans;
  // Of sums that would lose digits, one for each total: what it lost by rounding, or NaN once
  // something was infinite (Knuth, The Art of Computer Programming, 4.2.2, theorem B). Those are
  // sums of float64, for which there is no wider type, and of float32 that are no rows.
  std::vector<std::string> rests;
  // Of sums of float32, one for each total: the sum of the few vectors since the last
  // print_block_end(). So most vectors cost one addition, and totals have few roundings.
  std::vector<std::string> blocks;
};

// With `vectors` variables that begin with the value of no elements. `is_row`: the elements are
// spread evenly over all lanes of all variables; else one lane may meet them all.
Accumulator new_accumulator(IrWriter& writer, const plugin::FusedGroup& group, size_t instruction,
                            size_t vectors, int lanes, bool is_row);

// Adds a vector to variable `vector`. `mask`: the lanes that count; "": all.
void print_accumulation(IrWriter& writer, const Accumulator& accumulator, size_t vector,
                        const std::string& next, const std::string& mask);

// How many vectors a block should have, of which each adds up to half a unit in the last place: for
// a row, whose errors cancel among its many variables, more.
constexpr int block_vectors(bool is_row) { return is_row ? 64 : 16; }

// Adds the sums of the blocks, if there are any, to the totals.
void print_block_end(IrWriter& writer, const Accumulator& accumulator);

// The values of the variables, each lane for itself.
std::vector<std::string> print_totals(IrWriter& writer, const Accumulator& accumulator);

// All lanes of all variables as one scalar.
std::string print_total(IrWriter& writer, const Accumulator& accumulator);

}  // namespace tessera::jit
