// Large problems in the shapes of networks, for tests and measurements of the solver. Small ones,
// with everything that can go wrong: random_problem.h.
#pragma once

#include <span>
#include <string>

#include "place/placement.h"

namespace tessera {

enum class GraphShape : uint8_t {
  Chain,
  Residual,      // sums of a value and what five nodes make of it
  Inception,     // joins of four branches of up to four nodes
  Branches,      // 64 branches of 14 nodes fork from a value and are joined, again and again
  LongBranches,  // the same once, with branches as long as the size asks for
  Dense,         // blocks in which each layer reads all before it
  NarrowRandom,  // each node reads one or two of the newest six values
  WideRandom,    // ... of the newest 200
};

std::span<const GraphShape> graph_shapes();
std::string shape_name(GraphShape shape);

struct LargeProblemSize {
  int nodes = 10000;  // about: the last block is completed
  int layouts = 4;  // 2 to 4; half of them, rounded down, are on a second device where more than 2
  unsigned seed = 1;
};

// Candidates are as libraries offer them: dear nodes (convolutions) with a price for each layout,
// cheap ones that give the layout they take, some that know one layout only, groups of a dear node
// and what follows, with one or two outputs, and groups of dear nodes that read the same value.
// Conversions cost between a hundredth of a dear node and several of them, more between devices,
// and lead there through the default layouts alone. Equal arguments give equal problems.
PlacementProblem make_large_problem(GraphShape shape, const LargeProblemSize& size);

}  // namespace tessera
