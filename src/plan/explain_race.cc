#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plan/execution_plan.h"

namespace tessera {
namespace {

// A moment of a queue: the number of its steps that are done.
using Moments = std::vector<int>;

// Checks each byte range against the accesses before it. Keeps all accesses of a memory, so the
// time grows with the square of their number; it only runs for plans that use devices.
class RaceFinder {
 public:
  explicit RaceFinder(const ExecutionPlan& plan)
      : plan_(plan), queue_count_(count_queues(plan)), now_(queue_count_, Moments(queue_count_)) {}

  std::string find() {
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      const ExecutionStep& step = plan_.steps[index];
      after_.emplace_back(queue_count_);
      if (step.kind == ExecutionStep::Kind::View) continue;
      const std::string wrong = run(index, step);
      if (!wrong.empty()) return wrong;
    }
    for (const int wait : plan_.last_waits) {
      if (!is_earlier(wait, plan_.steps.size())) return "the end waits for no earlier step";
      learn(now_[0], after_[static_cast<size_t>(wait)]);
    }
    return explain_end();
  }

 private:
  struct Seen {
    int64_t begin = 0;
    int64_t end = 0;
    bool is_write = false;
    size_t step = 0;
    size_t queue = 0;
    int moment = 0;
  };
  // Of an arena: its device; of other memory: the owner.
  using Memory = std::pair<bool, int>;

  static size_t count_queues(const ExecutionPlan& plan) {
    int last = 0;
    for (const ExecutionStep& step : plan.steps) last = std::max(last, step.device.index);
    return static_cast<size_t>(last) + 1;
  }

  static bool is_earlier(int wait, size_t step) {
    return wait >= 0 && static_cast<size_t>(wait) < step;
  }

  static void learn(Moments& own, const Moments& other) {
    std::ranges::transform(own, other, own.begin(),
                           [](int left, int right) { return std::max(left, right); });
  }

  std::string run(size_t index, const ExecutionStep& step) {
    const auto queue = static_cast<size_t>(step.device.index);
    Moments& now = now_[queue];
    if (queue != 0) learn(now, now_[0]);
    for (const int wait : step.waits) {
      if (!is_earlier(wait, index)) {
        return "step " + std::to_string(index) + " waits for no earlier step";
      }
      learn(now, after_[static_cast<size_t>(wait)]);
    }
    for (const int input : step.inputs) {
      if (std::string wrong = access(index, queue, input, false); !wrong.empty()) return wrong;
    }
    for (const PlanOutput& output : step.outputs) {
      std::string wrong = access(index, queue, output.buffer, true);
      if (!wrong.empty()) return wrong;
    }
    if (step.workspace_bytes > 0) {
      const Seen workspace{.begin = step.workspace_offset,
                           .end = step.workspace_offset + step.workspace_bytes,
                           .is_write = true};
      std::string wrong = access(index, queue, Memory(true, step.device.index), workspace);
      if (!wrong.empty()) return wrong;
    }
    ++now[queue];
    after_[index] = now;
    return "";
  }

  std::string access(size_t index, size_t queue, int buffer, bool is_write) {
    const PlanBuffer& accessed = plan_.buffers[static_cast<size_t>(buffer)];
    if (accessed.kind == PlanBuffer::Kind::Constant) return "";
    const bool is_arena = accessed.kind == PlanBuffer::Kind::Arena;
    const int owner = accessed.owner < 0 ? buffer : accessed.owner;
    Seen seen{
        .begin = accessed.offset, .end = accessed.offset + accessed.bytes, .is_write = is_write};
    if (!accessed.strides.empty()) {
      const PlanBuffer& whole = plan_.buffers[static_cast<size_t>(owner)];
      seen.end = (is_arena ? whole.offset : 0) + whole.bytes;
    }
    return access(index, queue,
                  is_arena ? Memory(true, accessed.device.index) : Memory(false, owner), seen);
  }

  std::string access(size_t index, size_t queue, Memory memory, Seen seen) {
    std::vector<Seen>& history = seen_[memory];
    for (const Seen& earlier : history) {
      const bool overlaps = earlier.begin < seen.end && seen.begin < earlier.end;
      if (!overlaps || (!earlier.is_write && !seen.is_write)) continue;
      if (earlier.queue == queue || now_[queue][earlier.queue] > earlier.moment) continue;
      return "step " + std::to_string(index) + (seen.is_write ? " writes" : " reads") +
             " memory that step " + std::to_string(earlier.step) +
             (earlier.is_write ? " writes" : " reads") +
             " on another device, without waiting for it";
    }
    seen.step = index;
    seen.queue = queue;
    seen.moment = now_[queue][queue];
    history.push_back(seen);
    return "";
  }

  // After the run, the host may do anything with its own memory, and each device with its own.
  std::string explain_end() const {
    for (const auto& [memory, history] : seen_) {
      for (const Seen& seen : history) {
        const bool is_own = memory.first && static_cast<size_t>(memory.second) == seen.queue;
        if (is_own || now_[0][seen.queue] > seen.moment) continue;
        return "the run ends without waiting for step " + std::to_string(seen.step) +
               ", which accesses memory that is not of its device";
      }
    }
    return "";
  }

  const ExecutionPlan& plan_;
  size_t queue_count_;
  std::vector<Moments> now_;    // by queue
  std::vector<Moments> after_;  // by step
  std::map<Memory, std::vector<Seen>> seen_;
};

}  // namespace

std::string explain_race(const ExecutionPlan& plan) { return RaceFinder(plan).find(); }

}  // namespace tessera
