#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/containers/at.h"
#include "base/errors/check.h"
#include "plan/arena_blocks.h"
#include "plan/execution_plan.h"
#include "plan/order_steps.h"
#include "plan/shared_memory.h"
#include "plan/step_builder.h"

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

// Describes the steps of `plan` for order_steps(). Must be called before share_in_place(). A step
// whose output sizes are known only in the run is a barrier: no other step may pass it.
OrderProblem order_problem(const ExecutionPlan& plan, const Offers& offers) {
  return ProblemMaker(plan, offers).make();
}

// Puts the steps of `plan` into `order`.
void reorder(ExecutionPlan& plan, const std::vector<int>& order) {
  std::vector<ExecutionStep> steps;
  for (const int step : order) steps.push_back(std::move(plan.steps[at(step)]));
  plan.steps = std::move(steps);
}

class InPlaceSharer {
 public:
  InPlaceSharer(ExecutionPlan& plan, const Offers& offers)
      : plan_(plan), offers_(offers), users_(plan, offers) {
    count_last_uses();
  }

  void share() {
    std::vector<std::pair<size_t, ExecutionStep>>
        copies;  // index of the step that follows, and the copy
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      if (plan_.steps[index].kind == ExecutionStep::Kind::Kernel) share_step(index, copies);
    }
    std::vector<ExecutionStep> steps;
    auto copy = copies.begin();
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      for (; copy != copies.end() && copy->first == index; ++copy) {
        steps.push_back(std::move(copy->second));
      }
      steps.push_back(std::move(plan_.steps[index]));
    }
    plan_.steps = std::move(steps);
  }

 private:
  void count_last_uses() {
    last_use_.assign(plan_.buffers.size(), 0);
    const auto use = [&](int buffer, size_t step) {
      last_use_[at(owner_of(plan_, buffer))] = step;
    };
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      for (const int buffer : plan_.steps[index].inputs) use(buffer, index);
      for (const PlanOutput& output : plan_.steps[index].outputs) use(output.buffer, index);
    }
    for (const int buffer : plan_.results) use(buffer, plan_.steps.size());
  }

  void move(int owner, int whole) {
    size_t& last = last_use_[at(owner_of(plan_, whole))];
    last = std::max(last, last_use_[at(owner)]);
    users_.move(owner, whole, 0);
  }

  bool is_all_of_its_memory(int buffer) const {
    return plan_.buffers[at(buffer)].bytes == plan_.buffers[at(owner_of(plan_, buffer))].bytes;
  }

  // Whether nothing in the memory of `owner` is needed after step `index` has read input `port`,
  // and the step reads and writes nothing else in that memory.
  bool is_free_after(size_t index, int port, int owner) const {
    const ExecutionStep& step = plan_.steps[index];
    if (last_use_[at(owner)] > index) return false;
    for (size_t other = 0; other < step.inputs.size(); ++other) {
      if (static_cast<int>(other) != port && owner_of(plan_, step.inputs[other]) == owner) {
        return false;
      }
    }
    return std::none_of(step.outputs.begin(), step.outputs.end(), [&](const PlanOutput& output) {
      return owner_of(plan_, output.buffer) == owner;
    });
  }

  // Lets `output` share the memory of input `port` if that is free after the step has read it. One
  // of the two may be part of a larger buffer: before a part is written, nothing uses its memory.
  bool share_memory(size_t index, int port, int output) {
    const int input = plan_.steps[index].inputs[at(port)];
    const PlanBuffer& from = plan_.buffers[at(input)];
    const PlanBuffer& to = plan_.buffers[at(output)];
    const bool are_in_arena =
        from.kind == PlanBuffer::Kind::Arena && to.kind == PlanBuffer::Kind::Arena;
    // A buffer of 0 bytes has no memory to share.
    const bool is_same_size =
        from.bytes == to.bytes && from.bytes > 0 && from.strides.empty() && to.strides.empty();
    const int from_owner = owner_of(plan_, input);
    const int to_owner = owner_of(plan_, output);
    if (!are_in_arena || !is_same_size || !is_free_after(index, port, from_owner)) return false;
    if (is_all_of_its_memory(output) && users_.can_move(to_owner, from.offset)) {
      move(to_owner, input);
      return true;
    }
    if (is_all_of_its_memory(input) && users_.can_move(from_owner, to.offset)) {
      move(from_owner, output);
      return true;
    }
    return false;
  }

  void share_step(size_t index, std::vector<std::pair<size_t, ExecutionStep>>& copies) {
    const Candidate& candidate = offers_.candidates[at(plan_.steps[index].candidate)];
    for (size_t position = 0; position < plan_.steps[index].outputs.size(); ++position) {
      const CandidateOutput& port = candidate.outputs[position];
      PlanOutput& output = plan_.steps[index].outputs[position];
      const bool adds = (port.requests & TESSERA_REQUEST_ADD) != 0;
      const bool may_be_in_place = (port.requests & TESSERA_REQUEST_IN_PLACE) != 0;
      if (!adds && !may_be_in_place) continue;
      const int source = plan_.steps[index].inputs[at(port.in_place_input)];
      const bool is_shared = share_memory(index, port.in_place_input, output.buffer);
      if (adds) {
        output.request = TESSERA_REQUEST_ADD;
        if (!is_shared) copies.emplace_back(index, copy_step(source, output.buffer));
      } else if (is_shared) {
        output.request = TESSERA_REQUEST_IN_PLACE;
      }
    }
  }

  ExecutionStep copy_step(int from, int to) const {
    ExecutionStep step;
    step.kind = ExecutionStep::Kind::Copy;
    step.device = plan_.buffers[at(from)].device;
    step.inputs = {from};
    step.outputs = {{to, TESSERA_REQUEST_WRITE}};
    return step;
  }

  ExecutionPlan& plan_;
  const Offers& offers_;
  AliasTracker users_;
  std::vector<size_t> last_use_;  // by owner: the last step that uses its memory; the number of
                                  // steps if a result does
};

// Lets each output that its candidate can write in place of an input, or add to an input, share the
// memory of that input if nothing else in that memory is needed any more. Sets the requests of
// these outputs. Inserts a copy before a kernel that adds to a value that other steps still need.
// The offsets of buffers count from the beginning of their owner, before and after the call.
void share_in_place(ExecutionPlan& plan, const Offers& offers) {
  InPlaceSharer(plan, offers).share();
}

void note_releases(ExecutionPlan& plan) {
  std::vector<size_t> last(plan.buffers.size(), 0);
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    for (const int buffer : plan.steps[index].inputs) last[at(buffer)] = index;
    for (const PlanOutput& output : plan.steps[index].outputs) last[at(output.buffer)] = index;
  }
  for (const int buffer : plan.results) last[at(buffer)] = plan.steps.size();
  for (size_t buffer = 0; buffer < last.size(); ++buffer) {
    if (plan.buffers[buffer].kind == PlanBuffer::Kind::Dynamic &&
        last[buffer] < plan.steps.size()) {
      plan.steps[last[buffer]].released.push_back(static_cast<int>(buffer));
    }
  }
}

// Marks the steps whose output sizes are known only after they have run.
void mark_segment_ends(ExecutionPlan& plan) {
  for (ExecutionStep& step : plan.steps) {
    step.ends_static_segment =
        std::any_of(step.outputs.begin(), step.outputs.end(), [&](const PlanOutput& output) {
          return plan.buffers[at(output.buffer)].kind == PlanBuffer::Kind::Dynamic;
        });
  }
}

ptrdiff_t count_copies(const ExecutionPlan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](const ExecutionStep& step) {
    return step.kind == ExecutionStep::Kind::Copy;
  });
}

// Assigns offsets in the arena. Also tries the order of steps with the lowest peak, and takes it if
// the arena becomes smaller and no more copies are needed.
ExecutionPlan order_and_assign_offsets(ExecutionPlan plan, const Offers& offers) {
  // Another order would mix the memory of several devices, and break up bulks.
  if (uses_devices(plan)) {
    share_in_place(plan, offers);
    assign_offsets(plan);
    return plan;
  }
  const OrderProblem problem = order_problem(plan, offers);
  const StepOrder order = order_steps(problem);
  std::optional<ExecutionPlan> other;
  if (!std::is_sorted(order.steps.begin(), order.steps.end())) {
    other = plan;
    reorder(*other, order.steps);
  }
  share_in_place(plan, offers);
  assign_offsets(plan);
  if (!other) return plan;
  share_in_place(*other, offers);
  if (count_copies(*other) > count_copies(plan)) return plan;
  assign_offsets(*other);
  return other->arena_bytes < plan.arena_bytes ? *std::move(other) : plan;
}

}  // namespace

std::vector<ValueId> values_between_steps(const Offers& offers, const Placement& placement) {
  std::vector<ValueId> values;
  for (const int index : placement.chosen) {
    for (const CandidateOutput& port : offers.candidates[at(index)].outputs) {
      values.push_back(port.value);
    }
  }
  return values;
}

ExecutionPlan make_plan(const Graph& graph, const Offers& offers, const Placement& placement,
                        const LayoutTable& layouts, std::span<const ValueId> also,
                        const std::vector<std::vector<double>>& conversion_prices) {
  StepBuilder builder(graph, offers, layouts, conversion_prices);
  for (const int index : placement.chosen) builder.add(index);
  for (const ValueId value : graph.outputs) builder.add_result(value);
  for (const ValueId value : graph.kept) builder.add_result(value);
  for (const ValueId value : also) {
    if (builder.is_made(value)) builder.add_result(value);
  }
  ExecutionPlan plan = order_and_assign_offsets(builder.take(), offers);
  note_releases(plan);
  mark_segment_ends(plan);
  add_waits(plan);
#ifdef TESSERA_CHECKS
  const std::string violation = explain_violation(plan);
  TESSERA_CHECK(violation.empty(), violation);
  const std::string race = uses_devices(plan) ? explain_race(plan) : "";
  TESSERA_CHECK(race.empty(), race);
#endif
  return plan;
}

}  // namespace tessera
