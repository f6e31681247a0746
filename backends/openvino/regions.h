// The groups of nodes that are offered: few, because each takes long to compile and to measure. A
// region as a model for OpenVINO, and a lower bound of its cost (region_model.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/backend.h"

namespace tessera::openvino {

using Region = std::vector<int32_t>;  // nodes, ascending; convex

// Regions of `graph` whose nodes are all supported (`is_supported`, by node):
//   - the whole graph, if all of its nodes are supported;
//   - else the connected parts that no path through an unsupported node leaves and enters again,
//     the ones with the most work first, at most kMaxParts;
//   - of each part that can be cut at a single value, the halves, quarters and eighths by work, so
//     that no node is in more than four regions of one part.
// Parts other than the whole graph have at least kMinNodes nodes.
std::vector<Region> find_regions(const plugin::Graph& graph, const std::vector<bool>& is_supported);

constexpr size_t kMinNodes = 4;
constexpr size_t kMaxParts = 8;

// A region without its weights: an ONNX model whose inputs are `inputs`, then the weights.
struct RegionModel {
  std::string onnx;
  std::vector<plugin::Type> inputs;
  std::vector<plugin::Type> weights;
  std::vector<plugin::Type> outputs;
  bool keeps_nan = true;  // no finite result where NaN is correct
};

// The values that cross the boundary of a region, in the order of the model.
struct RegionBoundary {
  std::vector<int32_t> inputs;   // values that it reads, without constants
  std::vector<int32_t> weights;  // constants of float32 that are too large to be written out
  std::vector<int32_t> outputs;  // values that others read
};

RegionBoundary boundary_of(const plugin::Graph& graph, const Region& region);

// A lower bound of the work of a region, and the memory it needs.
struct RegionWork {
  double matmul_flops = 0;    // of matmuls and convolutions
  double boundary_bytes = 0;  // of inputs, weights and outputs
  int64_t weight_bytes = 0;
  int64_t inner_bytes = 0;  // the peak of the values inside
};

RegionWork work_of(const plugin::Graph& graph, const Region& region,
                   const RegionBoundary& boundary);

// The minimum time on this many threads: at the peak rate of the processor, with the fewest
// multiplications that are known for convolutions.
double optimistic_seconds(const RegionWork& work, int32_t threads);

// The approximate time for reading and compiling the model on one core.
double build_seconds(const RegionWork& work, size_t node_count);

// The model of a region. Throws Failure if the host cannot write it.
RegionModel model_of(const plugin::Graph& graph, const Region& region,
                     const RegionBoundary& boundary);

}  // namespace tessera::openvino
