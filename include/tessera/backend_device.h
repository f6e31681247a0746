// Devices with memory and queues of their own, in C++. Included by tessera/backend.h, which authors
// include; tessera/backend_device_abi.h defines what each function has to do.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/backend_device_abi.h"
#include "tessera/backend_graph.h"

namespace tessera::plugin {

using DevicePosition = tessera_device_position;

// The base class of an accelerator. A backend lists one in Description::devices
// (Device::interface). Functions may be called from any thread, and throw Failure: with
// TESSERA_OUT_OF_MEMORY if memory is missing, with TESSERA_DEVICE_FAILED if the device failed.
class DeviceInterface {
 public:
  virtual ~DeviceInterface() = default;

  virtual int64_t memory_bytes() const { return 0; }          // 0: not known
  virtual int64_t max_allocation_bytes() const { return 0; }  // at once; 0: not known
  virtual int64_t alignment_bytes() const { return TESSERA_ALIGNMENT_BYTES; }
  virtual bool can_host_access() const { return false; }

  // Returns the handle of at least `bytes` bytes; never null.
  virtual void* allocate(int64_t bytes) = 0;
  virtual void release_memory(void* handle) = 0;

  virtual void* create_queue() = 0;
  virtual void release_queue(void* queue) = 0;

  virtual void copy_to_device(void* queue, const void* from, const DevicePosition& to,
                              int64_t bytes) = 0;
  virtual void copy_to_host(void* queue, const DevicePosition& from, void* to, int64_t bytes) = 0;
  virtual void copy(void* queue, const DevicePosition& from, const DevicePosition& to,
                    int64_t bytes) = 0;
  // From `peer`, another device of this backend, to this one.
  virtual bool can_copy_from_peers() const { return false; }
  virtual void copy_from_peer(void* /*queue*/, DeviceInterface& /*peer*/,
                              const DevicePosition& /*from*/, const DevicePosition& /*to*/,
                              int64_t /*bytes*/) {
    throw Failure(TESSERA_UNSUPPORTED, "this device does not copy from other devices");
  }

  virtual void* create_event() = 0;
  virtual void release_event(void* event) = 0;
  virtual void record_event(void* queue, void* event) = 0;
  virtual void wait_event(void* queue, void* event) = 0;

  virtual void synchronise_event(void* event) = 0;
  virtual void synchronise_queue(void* queue) = 0;

  // The seconds between two complete events; nullopt if the device has no clock.
  virtual bool has_clock() const { return false; }
  virtual double elapsed_seconds(void* /*begin*/, void* /*end*/) { return 0; }

  // After a failure: throws Failure if the device cannot be used any more.
  virtual void check_usable() {}

  // DLDeviceType and the device's number if its handles are what DLPack calls the data of such a
  // device: libraries of Python can then share its memory. Type 0: they cannot.
  virtual int32_t dlpack_type() const { return 0; }
  virtual int32_t dlpack_id() const { return 0; }
};

namespace detail {

// The C struct of `device`, which must outlive it.
inline tessera_device_interface device_interface_abi(DeviceInterface& device) {
  tessera_device_interface abi = {};
  abi.struct_size = sizeof(abi);
  abi.flags = device.can_host_access() ? uint32_t{TESSERA_DEVICE_HOST_CAN_ACCESS} : 0U;
  abi.self = &device;
  abi.memory_bytes = device.memory_bytes();
  abi.max_allocation_bytes = device.max_allocation_bytes();
  abi.alignment_bytes = device.alignment_bytes();
  abi.allocate = [](void* self, int64_t bytes, void** handle, tessera_error* error) {
    return guarded(error, [&] { *handle = static_cast<DeviceInterface*>(self)->allocate(bytes); });
  };
  abi.release_memory = [](void* self, void* handle) {
    guarded(nullptr, [&] { static_cast<DeviceInterface*>(self)->release_memory(handle); });
  };
  abi.create_queue = [](void* self, void** queue, tessera_error* error) {
    return guarded(error, [&] { *queue = static_cast<DeviceInterface*>(self)->create_queue(); });
  };
  abi.release_queue = [](void* self, void* queue) {
    guarded(nullptr, [&] { static_cast<DeviceInterface*>(self)->release_queue(queue); });
  };
  abi.copy_to_device = [](void* self, void* queue, const void* from,
                          const tessera_device_position* to, int64_t bytes, tessera_error* error) {
    return guarded(error, [&] {
      static_cast<DeviceInterface*>(self)->copy_to_device(queue, from, *to, bytes);
    });
  };
  abi.copy_to_host = [](void* self, void* queue, const tessera_device_position* from, void* to,
                        int64_t bytes, tessera_error* error) {
    return guarded(
        error, [&] { static_cast<DeviceInterface*>(self)->copy_to_host(queue, *from, to, bytes); });
  };
  abi.copy = [](void* self, void* queue, const tessera_device_position* from,
                const tessera_device_position* to, int64_t bytes, tessera_error* error) {
    return guarded(error,
                   [&] { static_cast<DeviceInterface*>(self)->copy(queue, *from, *to, bytes); });
  };
  if (device.can_copy_from_peers()) {
    abi.copy_from_peer = [](void* self, void* queue, const tessera_device_interface* peer,
                            const tessera_device_position* from, const tessera_device_position* to,
                            int64_t bytes, tessera_error* error) {
      return guarded(error, [&] {
        static_cast<DeviceInterface*>(self)->copy_from_peer(
            queue, *static_cast<DeviceInterface*>(peer->self), *from, *to, bytes);
      });
    };
  }
  abi.create_event = [](void* self, void** event, tessera_error* error) {
    return guarded(error, [&] { *event = static_cast<DeviceInterface*>(self)->create_event(); });
  };
  abi.release_event = [](void* self, void* event) {
    guarded(nullptr, [&] { static_cast<DeviceInterface*>(self)->release_event(event); });
  };
  abi.record_event = [](void* self, void* queue, void* event, tessera_error* error) {
    return guarded(error, [&] { static_cast<DeviceInterface*>(self)->record_event(queue, event); });
  };
  abi.wait_event = [](void* self, void* queue, void* event, tessera_error* error) {
    return guarded(error, [&] { static_cast<DeviceInterface*>(self)->wait_event(queue, event); });
  };
  abi.synchronise_event = [](void* self, void* event, tessera_error* error) {
    return guarded(error, [&] { static_cast<DeviceInterface*>(self)->synchronise_event(event); });
  };
  abi.synchronise_queue = [](void* self, void* queue, tessera_error* error) {
    return guarded(error, [&] { static_cast<DeviceInterface*>(self)->synchronise_queue(queue); });
  };
  if (device.has_clock()) {
    abi.elapsed_seconds = [](void* self, void* begin, void* end, double* seconds,
                             tessera_error* error) {
      return guarded(error, [&] {
        *seconds = static_cast<DeviceInterface*>(self)->elapsed_seconds(begin, end);
      });
    };
  }
  abi.check_usable = [](void* self, tessera_error* error) {
    return guarded(error, [&] { static_cast<DeviceInterface*>(self)->check_usable(); });
  };
  abi.dlpack_type = device.dlpack_type();
  abi.dlpack_id = device.dlpack_id();
  return abi;
}

}  // namespace detail

}  // namespace tessera::plugin
