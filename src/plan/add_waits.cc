#include "plan/execution_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/containers/at.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

// An access of a step to bytes [begin, end) of a memory: of the arena of device -1 - memory, or of
// the buffer `memory`.
struct Access {
  int memory = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool is_write = false;
};

bool conflict(const Access& left, const Access& right) {
  return left.memory == right.memory && (left.is_write || right.is_write) &&
         left.begin < right.end && right.begin < left.end;
}

bool conflict(const std::vector<Access>& left, const std::vector<Access>& right) {
  return std::ranges::any_of(left, [&](const Access& one) {
    return std::ranges::any_of(right, [&](const Access& other) { return conflict(one, other); });
  });
}

int arena_of(DeviceId device) { return -1 - device.index; }

Access access_to(const ExecutionPlan& plan, int index, bool is_write) {
  const PlanBuffer& buffer = plan.buffers[at(index)];
  const bool is_in_arena = buffer.kind == PlanBuffer::Kind::Arena;
  const int owner = owner_of(plan, index);
  Access access{.memory = is_in_arena ? arena_of(buffer.device) : owner,
                .begin = buffer.offset,
                .end = buffer.offset + buffer.bytes,
                .is_write = is_write};
  // The elements of a buffer with strides are spread over the memory of its owner.
  if (!buffer.strides.empty() && !is_in_arena) access.end = plan.buffers[at(owner)].bytes;
  if (!buffer.strides.empty() && is_in_arena) {
    const PlanBuffer& whole = plan.buffers[at(owner)];
    access.end = std::max(access.end, whole.offset + whole.bytes);
  }
  return access;
}

std::vector<Access> accesses_of(const ExecutionPlan& plan, const ExecutionStep& step) {
  std::vector<Access> all;
  if (step.kind == ExecutionStep::Kind::View) return all;
  for (const int input : step.inputs) {
    if (plan.buffers[at(input)].kind == PlanBuffer::Kind::Constant) continue;
    all.push_back(access_to(plan, input, false));
  }
  for (const PlanOutput& output : step.outputs) all.push_back(access_to(plan, output.buffer, true));
  if (step.workspace_bytes > 0) {
    all.push_back({arena_of(step.device), step.workspace_offset,
                   step.workspace_offset + step.workspace_bytes, true});
  }
  return all;
}

// By device: the last step that is known to be done when a queue goes on.
using Clock = std::vector<int>;

void join(Clock& clock, const Clock& other) {
  for (size_t device = 0; device < clock.size(); ++device) {
    clock[device] = std::max(clock[device], other[device]);
  }
}

class WaitPlanner {
 public:
  explicit WaitPlanner(ExecutionPlan& plan)
      : plan_(plan),
        devices_(plan.device_arenas.size() + 1),
        known_(devices_, Clock(devices_, -1)),
        steps_of_(devices_) {}

  void run() {
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      ExecutionStep& step = plan_.steps[index];
      accesses_.push_back(accesses_of(plan_, step));
      done_.emplace_back();
      if (step.kind == ExecutionStep::Kind::View) continue;
      const auto device = at(step.device.index);
      Clock& clock = known_[device];
      // The host enqueues the step, and knows what it has waited for.
      if (step.device != kHostDevice) join(clock, known_[0]);
      step.waits = waits_for(accesses_.back(), device, clock);
      clock[device] = static_cast<int>(index);
      done_.back() = clock;
      steps_of_[device].push_back(static_cast<int>(index));
    }
    plan_.last_waits = waits_at_end();
  }

 private:
  // Steps of other devices that conflict with `accesses` and are not known to be done. Adds them to
  // `clock`.
  std::vector<int> waits_for(const std::vector<Access>& accesses, size_t device, Clock& clock) {
    std::vector<int> waits;
    for (size_t other = 0; other < devices_; ++other) {
      if (other == device) continue;
      const std::vector<int>& steps = steps_of_[other];
      for (auto step = steps.rbegin(); step != steps.rend() && *step > clock[other]; ++step) {
        if (!conflict(accesses, accesses_[at(*step)])) continue;
        waits.push_back(*step);
        join(clock, done_[at(*step)]);
        break;
      }
    }
    remove_implied(waits);
    return waits;
  }

  // After the run, the caller reads results and may change inputs. The next run begins without
  // knowing this one, so it must not find a step that still uses the memory of the host or of
  // another device.
  std::vector<int> waits_at_end() {
    std::vector<int> waits;
    Clock& clock = known_[0];
    for (size_t device = 1; device < devices_; ++device) {
      const std::vector<int>& steps = steps_of_[device];
      const auto last = std::find_if(steps.rbegin(), steps.rend(), [&](int step) {
        return std::ranges::any_of(accesses_[at(step)], [&](const Access& access) {
          return access.memory != arena_of(DeviceId{static_cast<int32_t>(device)});
        });
      });
      if (last == steps.rend() || *last <= clock[device]) continue;
      waits.push_back(*last);
      join(clock, done_[at(*last)]);
    }
    remove_implied(waits);
    return waits;
  }

  // A later wait may imply an earlier one.
  void remove_implied(std::vector<int>& waits) const {
    std::erase_if(waits, [&](int wait) {
      return std::ranges::any_of(waits, [&](int later) {
        return later != wait && done_[at(later)][at(plan_.steps[at(wait)].device.index)] >= wait;
      });
    });
  }

  ExecutionPlan& plan_;
  size_t devices_;
  std::vector<Clock> known_;                   // by device
  std::vector<std::vector<int>> steps_of_;     // by device
  std::vector<std::vector<Access>> accesses_;  // by step
  std::vector<Clock> done_;                    // by step: what is done when the step is
};

}  // namespace

bool uses_devices(const ExecutionPlan& plan) {
  return std::ranges::any_of(plan.steps,
                             [](const ExecutionStep& step) { return step.device != kHostDevice; });
}

void add_waits(ExecutionPlan& plan) {
  if (uses_devices(plan)) WaitPlanner(plan).run();
}

}  // namespace tessera
