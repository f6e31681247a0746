// Runs a graph node by node on the reference kernels.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "engine/schedule.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera {

// One node of one run, told to whoever watches.
struct StepEvent {
  const Node& node;
  std::span<const Tensor> inputs;
  // A watcher may replace an output by a tensor of the same type: tests inject faults this way.
  std::span<Tensor> outputs;
  std::chrono::steady_clock::time_point start;
  std::chrono::nanoseconds duration;
};
// Gives whether the run shall go on.
using StepWatcher = std::function<bool(const StepEvent& event)>;

// For one thread at a time. Tensors of constants are shared with the graph it was made from.
class Interpreter {
 public:
  // `graph` has all types that can be known before running; `registry` must outlive this.
  // Throws OutOfMemory where the values alive at once need more than the machine has.
  Interpreter(Graph graph, const ops::Registry& registry, int threads,
              Denormals denormals = Denormals::Keep);

  // `inputs` in the order of graph().inputs; an empty tensor where nothing reads the input. Gives
  // the graph's outputs, then its kept values. Types of inputs must be those of the graph (the
  // caller has checked). Where not all was known before running, the op's rule is asked again with
  // the actual inputs; throws InvalidArgument where it refuses them or contradicts the graph.
  // Nothing is given where the watcher ended the run.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const StepWatcher& watcher = {});

  const Graph& graph() const { return graph_; }
  const Schedule& schedule() const { return schedule_; }
  int threads() const { return pool_.threads(); }

 private:
  std::vector<Tensor> make_outputs(const Node& node, std::span<const Tensor> inputs,
                                   bool needs_check) const;

  Graph graph_;
  const ops::Registry& registry_;
  Schedule schedule_;
  std::vector<bool> needs_check_;  // by step of the schedule
  ThreadPool pool_;
};

}  // namespace tessera
