#include "plan/lower_peak.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

class ProblemMaker {
 public:
  ProblemMaker(const ExecutionPlan& plan, const Offers& offers)
      : plan_(plan),
        offers_(offers),
        writer_(plan.buffers.size(), -1),
        block_of_(plan.buffers.size(), -1),
        noted_by_(plan.steps.size(), -1) {}

  OrderProblem make() {
    for (const ExecutionStep& step : plan_.steps) add(step);
    return std::move(problem_);
  }

 private:
  void add(const ExecutionStep& step) {
    OrderStep added{.workspace_bytes = stored_bytes(step.workspace_bytes)};
    bool has_unknown_sizes = false;
    for (const int input : step.inputs) {
      if (writer_[at(input)] >= 0) wait_for(added, writer_[at(input)]);
      use(added, input);
    }
    for (const PlanOutput& output : step.outputs) {
      writer_[at(output.buffer)] = static_cast<int>(problem_.steps.size());
      use(added, output.buffer);
      has_unknown_sizes =
          has_unknown_sizes || plan_.buffers[at(output.buffer)].kind == PlanBuffer::Kind::Dynamic;
    }
    if (step.kind == ExecutionStep::Kind::Kernel) add_in_place(step, added);
    if (has_unknown_sizes) {
      // The last barrier already waits for all steps before it.
      const int last = std::exchange(barrier_, number_of_next());
      for (int earlier = std::max(last, 0); earlier < barrier_; ++earlier) wait_for(added, earlier);
    } else if (barrier_ >= 0) {
      wait_for(added, barrier_);
    }
    problem_.steps.push_back(std::move(added));
  }

  static int64_t stored_bytes(int64_t bytes) {
    return (bytes + TESSERA_ALIGNMENT_BYTES - 1) / TESSERA_ALIGNMENT_BYTES *
           TESSERA_ALIGNMENT_BYTES;
  }

  // The block that contains `buffer`; -1 if the buffer is not in the arena.
  int block(int buffer) {
    const int owner = owner_of(plan_, buffer);
    if (plan_.buffers[at(owner)].kind != PlanBuffer::Kind::Arena) return -1;
    if (block_of_[at(owner)] < 0) {
      block_of_[at(owner)] = static_cast<int>(problem_.block_bytes.size());
      problem_.block_bytes.push_back(stored_bytes(plan_.buffers[at(owner)].bytes));
    }
    return block_of_[at(owner)];
  }

  int number_of_next() const { return static_cast<int>(problem_.steps.size()); }

  // Adds each dependency once, in constant time, even for a step with thousands of inputs.
  void wait_for(OrderStep& step, int earlier) {
    if (std::exchange(noted_by_[at(earlier)], number_of_next()) == number_of_next()) return;
    step.after.push_back(earlier);
  }

  void use(OrderStep& step, int buffer) {
    const int used = block(buffer);
    if (used < 0) return;
    used_by_.resize(problem_.block_bytes.size(), -1);
    if (std::exchange(used_by_[at(used)], number_of_next()) == number_of_next()) return;
    step.blocks.push_back(used);
  }

  // Adds the outputs that share_in_place() writes over an input if no later step needs the input.
  void add_in_place(const ExecutionStep& step, OrderStep& added) {
    const Candidate& candidate = offers_.candidates[at(step.candidate)];
    constexpr uint32_t kInPlace = TESSERA_REQUEST_ADD | TESSERA_REQUEST_IN_PLACE;
    for (size_t position = 0; position < step.outputs.size(); ++position) {
      const CandidateOutput& port = candidate.outputs[position];
      if ((port.requests & kInPlace) == 0) continue;
      const int input = step.inputs[at(port.in_place_input)];
      const int output = step.outputs[position].buffer;
      if (!is_all_of_a_block(input) || !is_all_of_a_block(output)) continue;
      if (plan_.buffers[at(input)].bytes != plan_.buffers[at(output)].bytes) continue;
      added.in_place.push_back({.from = block(input), .to = block(output)});
    }
  }

  bool is_all_of_a_block(int buffer) {
    const PlanBuffer& described = plan_.buffers[at(buffer)];
    return block(buffer) >= 0 && described.strides.empty() &&
           described.bytes == plan_.buffers[at(owner_of(plan_, buffer))].bytes;
  }

  const ExecutionPlan& plan_;
  const Offers& offers_;
  OrderProblem problem_;
  std::vector<int> writer_;    // by buffer: the step that writes it
  std::vector<int> block_of_;  // by owner; -1: none yet
  std::vector<int> noted_by_;  // by step: the latest step that waits for it
  std::vector<int> used_by_;   // by block: the latest step that uses it
  int barrier_ = -1;           // the latest step with outputs of unknown size
};

}  // namespace

OrderProblem order_problem(const ExecutionPlan& plan, const Offers& offers) {
  return ProblemMaker(plan, offers).make();
}

void reorder(ExecutionPlan& plan, const std::vector<int>& order) {
  std::vector<ExecutionStep> steps;
  for (const int step : order) steps.push_back(std::move(plan.steps[at(step)]));
  plan.steps = std::move(steps);
}

}  // namespace tessera
