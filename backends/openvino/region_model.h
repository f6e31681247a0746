// A region as OpenVINO gets it, and what it costs at least.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "regions.h"
#include "tessera/backend.h"

namespace tessera::openvino {

// A region without its weights: an ONNX model whose inputs are `inputs`, then the weights.
struct RegionModel {
  std::string onnx;
  std::vector<plugin::Type> inputs;
  std::vector<plugin::Type> weights;
  std::vector<plugin::Type> outputs;
  bool keeps_nan = true;  // where NaN is right, no finite number comes out
};

// What crosses the border of a region, in the order in which the host writes it into a model.
struct RegionBorder {
  std::vector<int32_t> inputs;   // values that it reads, constants aside
  std::vector<int32_t> weights;  // constants of float32 that are too large to be written out
  std::vector<int32_t> outputs;  // values that others read
};

RegionBorder border_of(const plugin::Graph& graph, const Region& region);

// What a region does at least, for bounds, and what memory it takes.
struct RegionWork {
  double product_flops = 0;  // of products of matrices and convolutions
  double border_bytes = 0;   // of inputs, weights and outputs
  int64_t weight_bytes = 0;
  int64_t inner_bytes = 0;  // the most that values inside it take at one time
};

RegionWork work_of(const plugin::Graph& graph, const Region& region, const RegionBorder& border);

// The least time in which so many threads could do it: what the processor does at its best, with
// the fewest multiplications that are known for convolutions.
double optimistic_seconds(const RegionWork& work, int32_t threads);

// About what reading and compiling it takes on one core.
double build_seconds(const RegionWork& work, size_t node_count);

// The model of a region. Throws Failure where the host cannot write it.
RegionModel model_of(const plugin::Graph& graph, const Region& region, const RegionBorder& border);

}  // namespace tessera::openvino
