// The values with which candidates are compared: the real values of a graph, captured in one run of
// the reference kernels, and the input of a bench (microbench/bench.h) that is made of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads/denormals.h"
#include "base/threads/parallel.h"
#include "engine/interpreter.h"
#include "graph/graph.h"
#include "measure/measure_tuning.h"
#include "measure/phase_timer.h"
#include "microbench/bench.h"
#include "ops/registry.h"
#include "price/groups.h"
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

// The bytes, at most `wanted`, that measuring may keep while other code needs memory, too.
int64_t limited_by_memory(int64_t wanted, const MeasureTuning& tuning);

// "" if there is enough memory to measure `group`, whose inputs and outputs have `value_bytes`.
// Otherwise says how much it takes, and how much is available.
std::string explain_shortage(const Graph& group, int64_t value_bytes, const MeasureTuning& tuning);

// Makes the cases of the groups of one graph. The task and the timer must outlive it. For one
// thread.
class GroupCases {
 public:
  GroupCases(const TuningTask& task, Denormals denormals, PhaseTimer& phases);

  // The case of `group` with the values of its inputs and outputs, in its order, and those of a run
  // on special values, if these are judged.
  GroupCase make(const Graph& group, std::vector<Tensor> inputs, std::vector<Tensor> outputs);

  // For a group with a refused candidate: adds values that take long to compute and may show that
  // the candidate is fine. Returns false if there are no such values.
  bool add_limits(GroupCase& group);

 private:
  verification::Judge first_judge_of(const Graph& group) const;
  bool add_exact(GroupCase& group);
  bool add_magnitudes(GroupCase& group);

  const TuningTask& task_;
  Denormals denormals_;
  PhaseTimer& phases_;
  ThreadPool pool_;
  int64_t graph_bytes_;
  KnownProducts known_magnitudes_;
  KnownProducts known_specials_;
  KnownProducts known_limits_;
};

}  // namespace tessera::tuning
