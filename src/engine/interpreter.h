// Runs a graph node by node on the reference kernels.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/threads/parallel.h"
#include "engine/schedule.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera {

// A node that was run, as reported to a watcher.
struct StepEvent {
  const Node& node;
  std::span<const Tensor> inputs;
  // A watcher may replace an output by a tensor of the same type: tests inject faults this way.
  std::span<Tensor> outputs;
  std::chrono::steady_clock::time_point start;
  std::chrono::nanoseconds duration;
};
// Returns whether the run continues.
using StepWatcher = std::function<bool(const StepEvent& event)>;

// Not thread-safe. Shares the tensors of constants with the graph from which it was made.
class Interpreter {
 public:
  // `graph` has all types that can be known before running; `registry` must outlive this object.
  // Throws OutOfMemory if the values that are live at the same time need more than the available
  // memory.
  Interpreter(Graph graph, const ops::Registry& registry, int threads,
              Denormals denormals = Denormals::Keep);
  ~Interpreter();
  Interpreter(Interpreter&&) = delete;

  // `inputs` are in the order of graph().inputs; a tensor may be empty if nothing reads the input.
  // The caller has checked their types. Returns the graph's outputs, then its kept values; returns
  // nothing if the watcher stopped the run. If not everything was known before running, evaluates
  // the op's type rule again with the actual inputs; throws InvalidArgument if the rule refuses
  // them or contradicts the graph.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const StepWatcher& watcher = {});

  const Graph& graph() const { return graph_; }
  const Schedule& schedule() const { return schedule_; }
  int threads() const { return pool_.threads(); }

 private:
  class Bodies;

  std::vector<Tensor> make_outputs(const Node& node, std::span<const Tensor> inputs,
                                   bool needs_check) const;
  std::vector<Tensor> run_on_values(size_t step, std::span<const Tensor> inputs,
                                    std::span<const Tensor> values);

  Graph graph_;
  const ops::Registry& registry_;
  Schedule schedule_;
  std::vector<bool> needs_check_;                      // by step of the schedule
  std::vector<bool> runs_on_values_;                   // the same
  std::vector<std::shared_ptr<const void>> prepared_;  // for kernels, or by them; the same
  std::vector<std::unique_ptr<Bodies>> bodies_;        // the same; null if the node has none
  Denormals denormals_;
  ThreadPool pool_;
};

}  // namespace tessera
