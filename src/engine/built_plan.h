// A plan with everything that it needs to run: kernels, packed constants, and their owners.
#pragma once

#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "plan/execution_plan.h"

namespace tessera {

struct BuiltPlan {
  Graph graph;
  const ops::Registry* registry = nullptr;             // of the graph's ops; must outlive this
  std::vector<std::shared_ptr<const Plugin>> plugins;  // must outlive all members below
  std::shared_ptr<const LayoutTable> layouts;
  Offers offers;  // steps of the plan refer to its candidates
  ExecutionPlan plan;
  std::vector<std::shared_ptr<const Kernel>> kernels;  // by step; nullptr if the step has none
  // By step: the plans of its branches. May be shorter than the list of steps.
  std::vector<std::vector<BuiltPlan>> branches;
  std::vector<std::shared_ptr<const void>> constants;  // by PlanConstant: its bytes
  std::vector<Tensor> constant_results;                // by result: the tensor, if it is a constant
};

// The name of a step in errors: that of its node, or of the last node of its group; for a
// conversion or a copy, the name of the value.
std::string step_location(const BuiltPlan& plan, const ExecutionStep& step);

}  // namespace tessera
