#include "plan/share_in_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/at.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

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

}  // namespace

void share_in_place(ExecutionPlan& plan, const Offers& offers) {
  InPlaceSharer(plan, offers).share();
}

}  // namespace tessera
