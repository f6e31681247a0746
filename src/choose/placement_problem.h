// Converts a graph and its offers to the plain data that src/place works on.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/choose_tuning.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

// Nodes, values, candidates and layouts keep their indices. Conversions and copies have assumed
// prices.
PlacementProblem make_problem(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                              const ChooseTuning& tuning = {});

// The size of a value stored in `layout`; 0 if its type or the size is unknown.
int64_t stored_bytes(const Graph& graph, const LayoutTable& layouts, ValueId value,
                     LayoutId layout);

// By node: its location in error messages.
std::vector<std::string> node_locations(const Graph& graph);

// The assumed time of a conversion of `bytes` that was not measured.
double assumed_conversion_seconds(int64_t bytes, const ChooseTuning& tuning);

// The assumed time of copying a tensor of `bytes` between its layout's dense form and one with
// `strides`, in elements.
double assumed_copy_seconds(const TensorType& type, int64_t bytes,
                            const std::vector<int64_t>& strides, const ChooseTuning& tuning);

}  // namespace tessera
