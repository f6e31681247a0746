// A device as the plans of one execution context use it: one queue, and one arena.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/device.h"

namespace tessera {

// Not thread-safe.
class DeviceContext {
 public:
  // Throws DeviceFailed or OutOfMemory, naming the device.
  explicit DeviceContext(const Device& device);
  // Waits until the queue is empty.
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Device& device() const { return device_; }
  void* queue() const { return queue_->get(); }

  // Makes the arena large enough. Its contents are undefined afterwards. Throws OutOfMemory.
  void reserve_arena(int64_t bytes);
  // The handle of the arena; null if it was never reserved.
  void* arena() const { return arena_ ? arena_->handle() : nullptr; }
  int64_t arena_bytes() const { return arena_ ? arena_->bytes() : 0; }

  void synchronise() const { device_.synchronise_queue(queue()); }

  // Must be called after a failure, or if a run ended early: waits for the work that was enqueued.
  // If the device fails to finish it, replaces the queue. Afterwards explain_unusable() says
  // whether the device can still be used.
  void abandon_work() noexcept;
  // "", or why no later run can use the device.
  std::string explain_unusable() const;

 private:
  Device device_;
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceMemory> arena_;
  std::string lost_;  // the reason, after it was found unusable
};

}  // namespace tessera
