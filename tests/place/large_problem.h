// Large problems with the structure of real networks, for tests and benchmarks of the solver. For
// small problems with all edge cases see random_problem.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "place/placement.h"

namespace tessera {

enum class GraphShape : uint8_t {
  Chain,
  Residual,      // a value plus the result of five nodes applied to it
  Inception,     // four branches of up to four nodes, joined
  Branches,      // blocks of 64 branches of 14 nodes between a fork and a join
  LongBranches,  // one such block; the requested size decides the length of its branches
  Dense,         // blocks in which each layer reads all layers before it
  NarrowRandom,  // each node reads one or two of the newest six values
  WideRandom,    // each node reads one or two of the newest 200 values
};

std::span<const GraphShape> graph_shapes();
std::string shape_name(GraphShape shape);

struct LargeProblemSize {
  int nodes = 10000;  // approximately: the last block is completed
  // 2 to 4. If there are more than 2, half of them (rounded down) are on a second device.
  int layouts = 4;
  unsigned seed = 1;
};

// Candidates resemble those of libraries: expensive nodes (convolutions) with a price for each
// layout; cheap nodes whose outputs have the layout of their inputs; nodes that support one layout
// only; groups of an expensive node and its followers, with one or two outputs; and groups of
// expensive nodes that read the same value. A conversion costs between a hundredth of an expensive
// node and several times such a node. Between devices it costs more, and is possible only between
// the first layouts of the two. Equal arguments give equal problems.
PlacementProblem make_large_problem(GraphShape shape, const LargeProblemSize& size);

}  // namespace tessera
