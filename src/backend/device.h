// A device of a plug-in that has memory and queues of its own, and the owners of what it gives out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backend/plugin.h"
#include "graph/graph.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Index into the devices of a LayoutTable.
using DeviceId = StrongId<struct DeviceTag>;
// The host's processor and memory; has the same id in every table.
inline constexpr DeviceId kHostDevice{0};

// "cpu", or "kind:ordinal" if the ordinal is not 0.
std::string device_name(const tessera_device& device);

// The functions of a backend's device; nullptr if it works in the host's memory.
const tessera_device_interface* interface_of(const tessera_backend& backend, int32_t device);

// The reason why an interface, or the name of a device that has one, is illegal; "" if it is legal.
std::string explain_illegal_interface(const tessera_device_interface& interface);
std::string explain_illegal_device_name(const std::string& name);

// Refers to a device of an opened plug-in, which it keeps open. Copying is inexpensive. A failure
// of the device is thrown as DeviceFailed or OutOfMemory that names the device. Functions may be
// called from any thread.
class Device {
 public:
  // `index` is a device of `plugin` with an interface.
  Device(std::shared_ptr<const Plugin> plugin, int32_t index);

  const std::string& name() const { return name_; }
  // Index into the devices of its backend.
  int32_t index() const { return index_; }
  const Plugin& plugin() const { return *plugin_; }
  const tessera_device_interface& abi() const { return *abi_; }
  int64_t memory_bytes() const { return abi_->memory_bytes; }
  int64_t max_allocation_bytes() const { return abi_->max_allocation_bytes; }
  // The alignment of offsets in its memory; at least the alignment that kernels are promised.
  int64_t alignment_bytes() const;
  bool has_clock() const { return abi_->elapsed_seconds != nullptr; }
  bool is_same(const Device& other) const { return abi_ == other.abi_; }

  // "", or why it cannot be used: after a fork, or because it was lost.
  std::string explain_unusable() const;

  // Waits until the queue is empty, or until the event is complete.
  void synchronise_queue(void* queue) const;
  void synchronise_event(void* event) const;
  void record_event(void* queue, void* event) const;
  // Later work of `queue` waits for `event`, which may be of another device of the same plug-in.
  void wait_event(void* queue, void* event) const;
  double elapsed_seconds(void* begin, void* end) const;
  void copy_to_device(void* queue, const void* from, const tessera_device_position& to,
                      int64_t bytes) const;
  void copy_to_host(void* queue, const tessera_device_position& from, void* to,
                    int64_t bytes) const;
  // Within the device.
  void copy(void* queue, const tessera_device_position& from, const tessera_device_position& to,
            int64_t bytes) const;

  // Throws the failure `status` of an action such as "copy from the host".
  [[noreturn]] void fail(const std::string& action, int32_t code, const std::string& reason) const;

 private:
  friend class DeviceMemory;
  friend class DeviceQueue;
  friend class DeviceEvent;
  template <class Call>
  void call(const char* action, const Call& body) const;

  std::shared_ptr<const Plugin> plugin_;
  const tessera_device_interface* abi_;
  int32_t index_;
  std::string name_;
};

// Owns memory of a device. The caller synchronises before it is destroyed.
class DeviceMemory {
 public:
  DeviceMemory(Device device, int64_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* handle() const { return handle_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device device_;
  void* handle_ = nullptr;
  int64_t bytes_;
};

// Owns a queue.
class DeviceQueue {
 public:
  explicit DeviceQueue(Device device);
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  void* get() const { return queue_; }

 private:
  Device device_;
  void* queue_ = nullptr;
};

// Owns an event.
class DeviceEvent {
 public:
  explicit DeviceEvent(Device device);
  ~DeviceEvent();
  DeviceEvent(DeviceEvent&& other) noexcept
      : device_(std::move(other.device_)), event_(std::exchange(other.event_, nullptr)) {}
  DeviceEvent& operator=(DeviceEvent&&) = delete;

  void* get() const { return event_; }

 private:
  Device device_;
  void* event_ = nullptr;
};

// The functions of a conversion that copies between memories without changing the format:
// tessera_convert, with a DeviceCopy as `self`. They enqueue.
struct DeviceCopy {
  const tessera_device_interface* device = nullptr;  // in whose queue it is done
  const tessera_device_interface* peer = nullptr;    // the other device; null: the host
};
int32_t copy_to_device(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error);
int32_t copy_to_host(void* self, tessera_run_context* context, const tessera_buffer* from,
                     const tessera_buffer* to, tessera_error* error);
int32_t copy_from_peer(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error);
// Within one device.
int32_t copy_on_device(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error);

}  // namespace tessera
