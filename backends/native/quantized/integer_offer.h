// A product or a convolution of bytes that is offered: a node of integers, or a quantised region.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "matmul/matmul_problem.h"
#include "quantized/integer_kernel.h"
#include "tessera/backend.h"

namespace tessera::native {

struct IntegerOffer {
  plugin::Node node;                  // whose attributes count
  std::vector<int32_t> nodes;         // ascending
  std::vector<plugin::Value> inputs;  // by role; those that are left out are not present
  plugin::Value result;
  IntegerWork work;                  // with all but ports, loops, packing and sized
  bool has_checked_columns = false;  // check_by_column() has nothing to do

  const plugin::Value& input(IntegerRole role) const { return inputs[role]; }
};

// For a node that has these inputs, each for itself: checks their types, and that scales, zero
// points and biases are single or by column. Throws Failure if there is no kernel.
IntegerOffer offer_of_node(const plugin::Node& node, const IntegerRoles& inputs);
void check_by_column(const IntegerOffer& offer, int64_t columns);

// Deeper sums may exceed int32, which only results of int32 may.
void check_depth(const IntegerOffer& offer, int64_t depth);

// Each offers its candidates, or throws Failure. integer_matmul.cc and integer_convolution.cc
// define them.
void offer_integer_matmul(plugin::ProposeContext& context, IntegerOffer offer, const MatMulOp& op);
void offer_integer_convolution(plugin::ProposeContext& context, const IntegerOffer& offer);

// The candidate with ports for all inputs, which are set in the offer's work too.
plugin::Candidate integer_candidate(IntegerOffer& offer, const char* algorithm,
                                    const char* left_layout, const char* result_layout,
                                    std::optional<plugin::Pack> pack);

// Sets workspace, estimate and build(), and adds the candidate.
void add_integer_candidate(plugin::ProposeContext& context, plugin::Candidate candidate,
                           const IntegerOffer& offer, const SizedProduct& proposed);

}  // namespace tessera::native
