// The part of PlanRunner that works with devices: bulks are enqueued, and the host waits where it
// or another device needs a result.
#include <algorithm>
#include <string>

#include "engine/plan_runner.h"
#include "tessera/error.h"

namespace tessera {

PlanRunner::DeviceRun::DeviceRun(DeviceId device_id, DeviceContext& device_context,
                                 ThreadPool& pool)
    : id(device_id), device(device_context), context(pool) {}

void PlanRunner::add_devices() {
  for (size_t index = 1; index < built_.layouts->device_count(); ++index) {
    const DeviceId id{static_cast<int32_t>(index)};
    const bool is_used = std::ranges::any_of(
        built_.plan.steps, [&](const ExecutionStep& step) { return step.device == id; });
    if (!is_used) continue;
    devices_.push_back(std::make_unique<DeviceRun>(
        id, execution_context_.device(built_.layouts->device(id)), execution_context_.pool()));
  }
  for (const DeviceId id : program_.event_devices()) {
    events_.emplace_back(built_.layouts->device(id));
  }
}

PlanRunner::DeviceRun& PlanRunner::run_of(DeviceId device) {
  return **std::ranges::find_if(devices_, [&](const auto& run) { return run->id == device; });
}

std::string PlanRunner::explain_unusable() const {
  for (const auto& run : devices_) {
    const std::string reason = run->device.explain_unusable();
    if (!reason.empty()) return "device '" + run->device.device().name() + "': " + reason;
  }
  return "";
}

std::string PlanRunner::device_of(size_t step) const {
  const DeviceId device = built_.plan.steps[step].device;
  return device == kHostDevice ? "cpu" : built_.layouts->device(device).name();
}

// Before a run: the arena and the queue may have been replaced since the last one.
void PlanRunner::prepare_devices() {
  for (const auto& run : devices_) {
    const std::string reason = run->device.explain_unusable();
    if (!reason.empty()) {
      throw Error(ErrorKind::DeviceFailed, "device '" + run->device.device().name() + "'",
                  reason + "; bind the model again, to run on the remaining devices");
    }
    program_.move_device_arena(run->id, run->device.arena());
    run->context.set_queue(run->device.queue(), max_bulk_steps_ != 1);
    run->context.set_random_seed(execution_context_.seed());
    run->pending = 0;
  }
}

void PlanRunner::wait_for(std::span<const StaticSegment::Wait> waits, DeviceId waiting) {
  for (const StaticSegment::Wait& wait : waits) {
    DeviceRun& run = run_of(wait.device);
    void* event = wait.event < 0 ? nullptr : events_[static_cast<size_t>(wait.event)].get();
    const bool is_of_same_backend =
        waiting != kHostDevice &&
        &run.device.device().plugin() == &built_.layouts->device(waiting).plugin();
    if (!is_of_same_backend) {
      wait_on_host(run, event);
      continue;
    }
    DeviceRun& own = run_of(waiting);
    try {
      own.device.device().wait_event(own.device.queue(), event);
    } catch (const Error& error) {
      fail_device(own, error);
    }
  }
}

// Null: waits for all of the device's work.
void PlanRunner::wait_on_host(DeviceRun& run, void* event) {
  try {
    if (event != nullptr) {
      run.device.device().synchronise_event(event);
      return;
    }
    run.device.synchronise();
    run.pending = 0;
  } catch (const Error& error) {
    fail_device(run, error);
  }
}

void PlanRunner::run_bulk(const StaticSegment& segment, const PlanWatcher& watcher) {
  DeviceRun& run = run_of(segment.device);
  if (segment.check != nullptr) segment.check->run(program_.inputs_of(segment.begin));
  const bool is_watched = watcher || execution_context_.has_time_limit();
  for (size_t call = segment.begin; call < segment.end;) {
    const size_t limit = is_watched            ? 1
                         : max_bulk_steps_ > 0 ? static_cast<size_t>(max_bulk_steps_ - run.pending)
                                               : segment.end - call;
    const size_t end = std::min(segment.end, call + limit);
    const auto start = std::chrono::steady_clock::now();
    if (execution_context_.has_time_limit() && execution_context_.is_past_deadline(start)) {
      stop_at(call);
    }
    if (run.pending == 0) run.first_pending = call;
    run_calls(call, end, run.context);
    run.pending += static_cast<int>(end - call);
    run.end_pending = end;
    const auto enqueued = std::chrono::steady_clock::now();
    if (watcher || run.pending == max_bulk_steps_) wait_on_host(run, nullptr);
    if (watcher) {
      watcher({program_.step_of(call), program_.inputs_of(call), program_.outputs_of(call), start,
               std::chrono::steady_clock::now() - start, enqueued - start});
    }
    call = end;
  }
  if (segment.event < 0) return;
  try {
    run.device.device().record_event(run.device.queue(),
                                     events_[static_cast<size_t>(segment.event)].get());
  } catch (const Error& error) {
    fail_device(run, error);
  }
}

// Names the steps that were enqueued: the device does not say which of them failed.
void PlanRunner::fail_device(const DeviceRun& run, const Error& error) const {
  if (run.pending == 0) throw error;
  const auto name_of = [&](size_t call) {
    return step_location(built_, built_.plan.steps[program_.step_of(call)]);
  };
  const std::string last = name_of(run.end_pending - 1);
  const std::string range = run.pending == 1
                                ? ""
                                : ", or one of the " + std::to_string(run.pending - 1) +
                                      " steps before it from " + name_of(run.first_pending) + " on";
  throw Error(error.kind(), last + range, error.where() + ": " + error.message());
}

}  // namespace tessera
