#include "engine/execution_context.h"

#include <string>

#include "base/memory/memory.h"
#include "engine/largest_buffers.h"
#include "ops/work.h"
#include "tessera/error.h"

namespace tessera {

DeviceContext::DeviceContext(const Device& device)
    : device_(device), queue_(std::make_unique<DeviceQueue>(device)) {}

DeviceContext::~DeviceContext() {
  if (lost_.empty() && !device_.plugin().is_forked()) abandon_work();
}

void DeviceContext::reserve_arena(int64_t bytes) {
  if (arena_ && arena_->bytes() >= bytes) return;
  // Both arenas at once may not fit, and enqueued work may still use the old one.
  if (arena_) synchronise();
  arena_.reset();
  arena_ = std::make_unique<DeviceMemory>(device_, bytes);
}

void DeviceContext::abandon_work() noexcept {
  try {
    synchronise();
  } catch (...) {
    try {
      lost_ = device_.explain_unusable();
      if (lost_.empty()) queue_ = std::make_unique<DeviceQueue>(device_);
    } catch (const Error& error) {
      lost_ = error.message();
    } catch (...) {
      lost_ = "there was not enough memory to go on";
    }
  }
}

std::string DeviceContext::explain_unusable() const {
  if (!lost_.empty()) return "it failed in an earlier run: " + lost_;
  if (device_.plugin().is_forked()) return device_.explain_unusable();
  return "";
}

namespace {

using Kind = PlanBuffer::Kind;

// The memory of the host that a run needs in addition to inputs, constants and the arena: results
// are allocated in each run.
int64_t result_bytes(const ExecutionPlan& plan) {
  int64_t total = 0;
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool is_result =
        buffer.kind == Kind::Output && buffer.owner < 0 && buffer.device == kHostDevice;
    if (is_result) total = ops::saturating_add(total, buffer.bytes);
  }
  return total;
}

}  // namespace

ThreadPool* ExecutionContext::one_thread() {
  if (pool_.threads() == 1) return nullptr;
  if (!one_) one_.emplace(1, denormals_);
  return &*one_;
}

DeviceContext& ExecutionContext::device(const Device& device) {
  for (const auto& known : devices_) {
    if (known->device().is_same(device)) return *known;
  }
  return *devices_.emplace_back(std::make_unique<DeviceContext>(device));
}

void ExecutionContext::reserve_device_arenas(const BuiltPlan& built) {
  std::vector<bool> is_used(built.plan.device_arenas.size(), false);
  for (const ExecutionStep& step : built.plan.steps) {
    if (step.device != kHostDevice) is_used[static_cast<size_t>(step.device.index - 1)] = true;
  }
  for (size_t index = 0; index < is_used.size(); ++index) {
    if (!is_used[index]) continue;
    const DeviceId id{static_cast<int32_t>(index) + 1};
    device(built.layouts->device(id)).reserve_arena(built.plan.device_arenas[index].bytes);
  }
}

void ExecutionContext::reserve_arena(const BuiltPlan& built) {
  reserve_device_arenas(built);
  const bool is_enough = !arena_.is_null() && built.plan.arena_bytes <= arena_.bytes();
  const int64_t more = is_enough ? 0 : built.plan.arena_bytes - arena_.bytes();
  const int64_t needed = ops::saturating_add(more, result_bytes(built.plan));
  const bool is_large = needed >= kLargeAllocationBytes;
  const int64_t available = is_large ? available_memory_bytes() : needed;
  if (needed > available) {
    throw Error(ErrorKind::OutOfMemory, "intermediate values",
                "expected to need at most the " + std::to_string(available) +
                    " bytes that are available, found a need of " + std::to_string(needed) +
                    " bytes; the largest: " + largest_buffers_text(built));
  }
  if (is_enough || arena_.replace(built.plan.arena_bytes, pool_)) return;
  throw Error(ErrorKind::OutOfMemory, "intermediate values",
              "expected to allocate one block of " + std::to_string(built.plan.arena_bytes) +
                  " bytes, found that the system has no such block; the largest values: " +
                  largest_buffers_text(built));
}

ExecutionContext::ActiveRun::ActiveRun(ExecutionContext& context) : context_(context) {
  if (context.state_ != kIdle && context.used_after_forks_ != fork_count()) {
    throw Error(ErrorKind::Unsupported, "executor",
                "expected one that no thread used when the process was forked, found one in use; "
                "bind another one in the new process");
  }
  context.used_after_forks_ = fork_count();
  int idle = kIdle;
  is_outermost_ = context.state_.compare_exchange_strong(idle, kRunning);
  if (!is_outermost_) return;
  ++context.runs_;
  if (context.time_limit_.count() > 0) {
    context.deadline_ = std::chrono::steady_clock::now() + context.time_limit_;
  }
}

ExecutionContext::ActiveRun::~ActiveRun() {
  if (is_outermost_) context_.state_ = kIdle;
}

}  // namespace tessera
