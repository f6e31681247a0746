// The true values of a graph, by one run on the reference kernels.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/denormals.h"
#include "engine/interpreter.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera::tuning {

using CapturedValues = std::map<ValueId, Tensor>;

// Elements for each input of `graph` whose type is known: floating ones in [-2, 2), whole ones 0 or
// 1, so that they may be indices. Equal seeds give equal elements.
std::vector<Tensor> draw_inputs(const Graph& graph, uint64_t seed);

// Runs the graph as often as it is asked. `registry` must outlive it.
class Capture {
 public:
  // `inputs` in the order of the graph's. Every constant has its elements.
  Capture(const Graph& graph, const ops::Registry& registry, int threads,
          std::vector<Tensor> inputs, Denormals denormals = Denormals::Keep);

  // Told after each node: its op, how many were run, and of how many. Gives false to stop.
  using Watcher = std::function<bool(const std::string& op, size_t done, size_t total)>;

  // The elements of `wanted`, and of nothing else once it is done. Stops after the node that makes
  // the last of them. Throws what reference kernels refuse these inputs with. nullopt where
  // `watcher` stopped it.
  std::optional<CapturedValues> run(std::span<const ValueId> wanted, const Watcher& watcher = {});

 private:
  Denormals denormals_;
  Interpreter interpreter_;
  std::vector<Tensor> inputs_;
};

// Of what each output of `group` was summed up, for judging errors: sums and products are computed
// on magnitudes by the reference kernels, and functions that bring no two numbers further apart
// hand them on. An empty tensor where another op lies between, or more than two products in a row,
// as in a region of many layers: magnitudes of magnitudes tell nothing. `inputs` in the order of
// the group's. `known`, where it is given, keeps what was computed of true values alone, for other
// groups of the same graph and run: most begin with the same product.
struct KnownProducts {
  std::map<std::string, Tensor> by_value;  // by name
  int64_t bytes = 0;
  int64_t most_bytes = int64_t{256} << 20;
};
std::vector<Tensor> summed_magnitudes(const Graph& group, const ops::Registry& registry,
                                      std::span<const Tensor> inputs, ThreadPool& pool,
                                      KnownProducts* known = nullptr);

// `inputs` of `group` with special values (verify/special_values.h), and its outputs by the
// reference. Both are empty where there are none to put in, the reference refuses them, or more
// than two products stand in a row: then all is NaN, and the reference takes long to say so.
struct SpecialRun {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
SpecialRun run_special_values(const Graph& group, const ops::Registry& registry,
                              std::span<const Tensor> inputs, ThreadPool& pool,
                              KnownProducts* known = nullptr);

}  // namespace tessera::tuning
