// A plan with everything that it runs on: kernels, packed constants, and who keeps them alive.
#pragma once

#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/kernel.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "plan/execution_plan.h"

namespace tessera {

struct BuiltPlan {
  Graph graph;
  const ops::Registry* registry = nullptr;             // of the graph's ops; outlives this
  std::vector<std::shared_ptr<const Plugin>> plugins;  // outlive all below
  std::shared_ptr<const LayoutTable> layouts;
  Offers offers;  // those chosen are referred to by the plan's steps
  ExecutionPlan plan;
  std::vector<std::shared_ptr<const Kernel>> kernels;  // by step; null where none runs
  // By step, the plans of its branches; may be shorter than the steps are many.
  std::vector<std::vector<BuiltPlan>> branches;
  std::vector<std::shared_ptr<const void>> constants;  // by PlanConstant: their bytes
  std::vector<Tensor> constant_results;  // by result: the tensor, where it is a constant's
};

// How a step is called in errors: that of its node, or of the last one of its group; the value that
// a conversion is for.
std::string step_location(const BuiltPlan& plan, const ExecutionStep& step);

}  // namespace tessera
