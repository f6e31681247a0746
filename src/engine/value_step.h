// A step that runs a node on whole values: lists, optionals, strings, and nodes with nested graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/built_plan.h"
#include "engine/execution_context.h"
#include "engine/io_binding.h"
#include "ops/op.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {

// Refers to the plan from which it was made, which must outlive this object and not move. Not
// thread-safe.
class ValueStep : public ops::BodyRunner {
 public:
  ValueStep(const BuiltPlan& built, size_t step);

  // `inputs` and `outputs` are the arguments of the step, `dynamic` has, by buffer, the values
  // whose sizes became known in the run. Throws the errors of the kernel, InvalidArgument if an
  // output is not what the plan expects, and Cancelled.
  void run(std::span<const tessera_buffer> inputs, std::span<const tessera_buffer> outputs,
           std::span<Tensor> dynamic, const IoBinding& io, ExecutionContext& context);

  // For the kernel, while it runs.
  std::vector<Tensor> run(size_t body, std::span<const Tensor> inputs) override;
  std::unique_ptr<ops::RepeatedRuns> repeat(size_t body, std::span<const Tensor> inputs,
                                            std::span<const Tensor> outputs) override;

 private:
  static constexpr int kLeftOut = -1;

  class OuterRun;
  class Repeated;

  [[noreturn]] void fail(size_t body, const Error& error) const;

  Tensor value_of(size_t port, const tessera_buffer& argument, std::span<const Tensor> dynamic,
                  const IoBinding& io) const;
  void give(size_t port, Tensor result, const tessera_buffer& argument, std::span<Tensor> dynamic);
  int port_of(ValueId value) const;

  const BuiltPlan& built_;
  const ExecutionStep& step_;
  const Node& node_;
  const ops::Op& op_;
  PlannedBodies* bodies_ = nullptr;         // null if the node has no nested graphs
  std::vector<int> inputs_;                 // by input of the node: its port
  std::vector<std::vector<int>> captured_;  // by nested graph: the ports of what it captures
  std::vector<size_t> outputs_;             // by port: the output of the node
  std::vector<Tensor> ports_;               // of the active run
  std::vector<Tensor> given_;
  std::vector<Tensor> results_;
  std::shared_ptr<const void> prepared_;  // for the kernel, or by it, for all runs
  ExecutionContext* context_ = nullptr;   // of the active run
};

}  // namespace tessera
