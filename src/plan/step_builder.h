// Builds the steps of a plan, before in-place outputs and offsets are decided.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/execution_plan.h"
#include "plan/shared_memory.h"

namespace tessera {

// Builds steps with a separate buffer for every value in every layout. Views and the parts of joint
// values are inside other buffers. Offsets count from the beginning of the owner.
class StepBuilder {
 public:
  // The parameters of make_plan(); all must outlive this object.
  StepBuilder(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
              const std::vector<std::vector<double>>& conversion_prices);

  // Must be called in the order of the placement.
  void add(int candidate);
  // Must be called after all candidates were added.
  void add_result(ValueId value);
  bool is_made(ValueId value) const;

  ExecutionPlan take();

 private:
  void add_kernel(int index);
  void add_view(int index);
  void add_joint(int index);
  std::vector<bool> allocate_parts(const Candidate& candidate, const std::vector<int>& inputs,
                                   int whole);
  void add_step(ExecutionStep step);
  int add_buffer(PlanBuffer::Kind kind, ValueId value, LayoutId layout);
  int make_buffer(PlanBuffer::Kind kind, ValueId value, LayoutId layout);
  int add_part(int whole, ValueId value, LayoutId layout, const StoragePart& part);
  void note(ValueId value, LayoutId layout, int buffer);
  int obtain(ValueId value, LayoutId layout, const PortRequirements& needs);
  int convert(ValueId value, LayoutId layout);
  std::vector<ConversionStep> way_to(ValueId value, LayoutId layout) const;
  std::vector<ConversionStep> cheapest_conversions_to(ValueId value, LayoutId layout) const;
  int copied(int buffer);
  int constant(const CandidateInput& port, int candidate);

  const Graph& graph_;
  const Offers& offers_;
  const LayoutTable& layouts_;
  const std::vector<std::vector<double>>& conversion_prices_;
  ExecutionPlan plan_;
  std::vector<std::vector<std::pair<LayoutId, int>>> present_;  // by value: layout, buffer
  std::map<std::tuple<ValueId, LayoutId, std::string>, int> constants_;
  AliasTracker users_;
  std::vector<bool> is_result_;  // by buffer
};

}  // namespace tessera
