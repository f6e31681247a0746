// Captures the real values of a graph in one run of the reference kernels.
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
#include "verify/error_limits.h"

namespace tessera::tuning {

using CapturedValues = std::map<ValueId, Tensor>;

// Random elements for each input of `graph` with a known type: floating-point numbers in [-2, 2),
// integers 0 or 1, so that they are valid indices. Equal seeds give equal elements.
std::vector<Tensor> draw_inputs(const Graph& graph, uint64_t seed);

// Runs the graph as often as requested. `registry` must outlive it.
class Capture {
 public:
  // `inputs` are in the order of the graph's inputs. All constants must have their elements.
  Capture(const Graph& graph, const ops::Registry& registry, int threads,
          std::vector<Tensor> inputs, Denormals denormals = Denormals::Keep);

  // Called after each node with its op, the number of nodes run, and their total. Returns false to
  // stop.
  using Watcher = std::function<bool(const std::string& op, size_t done, size_t total)>;

  // The elements of the values in `wanted`; others are released on the way. Stops after the node
  // that makes the last of them. Throws if the reference kernels reject these inputs. nullopt if
  // `watcher` stopped it.
  std::optional<CapturedValues> run(std::span<const ValueId> wanted, const Watcher& watcher = {});

 private:
  Denormals denormals_;
  Interpreter interpreter_;
  std::vector<Tensor> inputs_;
};

// For judging errors: the sum of magnitudes of the terms of each output of `group`. The reference
// kernels compute sums and products on magnitudes, and non-expansive functions pass them on. The
// tensor is empty if another op is involved or if more than two products are chained, as in a
// region of many layers, where magnitudes of magnitudes say nothing. `inputs` are in the group's
// order. `known`, if given, caches results that depend on real values alone, for other groups of
// the same graph and run.
using verification::KnownProducts;
std::vector<Tensor> summed_magnitudes(const Graph& group, const ops::Registry& registry,
                                      std::span<const Tensor> inputs, ThreadPool& pool,
                                      KnownProducts* known = nullptr);

// `inputs` of `group` with special values (verify/special_values.h), and its outputs from the
// reference. Both are empty if no special values apply, if the reference rejects them, or if more
// than two products are chained: then everything is NaN, which the reference takes long to compute.
struct SpecialRun {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
SpecialRun run_special_values(const Graph& group, const ops::Registry& registry,
                              std::span<const Tensor> inputs, ThreadPool& pool,
                              KnownProducts* known = nullptr);

}  // namespace tessera::tuning
