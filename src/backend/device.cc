#include "backend/device.h"

#include <algorithm>

#include "backend/contract/status.h"
#include "tessera/error.h"

namespace tessera {
namespace {

const tessera_device_position& position_of(const tessera_buffer& buffer) {
  return *static_cast<const tessera_device_position*>(buffer.data);
}

}  // namespace

std::string device_name(const tessera_device& device) {
  return device.kind + (device.ordinal == 0 ? "" : ":" + std::to_string(device.ordinal));
}

const tessera_device_interface* interface_of(const tessera_backend& backend, int32_t device) {
  return backend.device_interfaces == nullptr ? nullptr : backend.device_interfaces[device];
}

std::string explain_illegal_interface(const tessera_device_interface& interface) {
  if (interface.struct_size < sizeof(interface)) {
    return "has an interface of " + std::to_string(interface.struct_size) + " bytes, expected " +
           std::to_string(sizeof(interface)) + " or more";
  }
  const int64_t alignment = interface.alignment_bytes;
  if (alignment < 1 || alignment > TESSERA_MAX_DEVICE_ALIGNMENT_BYTES ||
      (alignment & (alignment - 1)) != 0) {
    return "has an alignment of " + std::to_string(alignment) +
           " bytes, expected a power of two up to " +
           std::to_string(TESSERA_MAX_DEVICE_ALIGNMENT_BYTES);
  }
  const std::pair<bool, const char*> functions[] = {
      {interface.allocate != nullptr, "allocate"},
      {interface.release_memory != nullptr, "release_memory"},
      {interface.create_queue != nullptr, "create_queue"},
      {interface.release_queue != nullptr, "release_queue"},
      {interface.copy_to_device != nullptr, "copy_to_device"},
      {interface.copy_to_host != nullptr, "copy_to_host"},
      {interface.copy != nullptr, "copy"},
      {interface.create_event != nullptr, "create_event"},
      {interface.release_event != nullptr, "release_event"},
      {interface.record_event != nullptr, "record_event"},
      {interface.wait_event != nullptr, "wait_event"},
      {interface.synchronise_event != nullptr, "synchronise_event"},
      {interface.synchronise_queue != nullptr, "synchronise_queue"},
      {interface.check_usable != nullptr, "check_usable"}};
  for (const auto& [is_there, function] : functions) {
    if (!is_there) return std::string("lacks the function ") + function;
  }
  return "";
}

std::string explain_illegal_device_name(const std::string& name) {
  if (name == "cpu") return "has memory of its own, so its kind must not be 'cpu'";
  const bool is_plain = std::ranges::all_of(name, [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_' ||
           letter == ':';
  });
  return is_plain ? "" : "has a kind that is not made of lower-case letters, digits and '_'";
}

Device::Device(std::shared_ptr<const Plugin> plugin, int32_t index)
    : plugin_(std::move(plugin)),
      abi_(interface_of(plugin_->abi(), index)),
      index_(index),
      name_(device_name(plugin_->abi().devices[index])) {}

int64_t Device::alignment_bytes() const {
  return std::max<int64_t>(abi_->alignment_bytes, TESSERA_ALIGNMENT_BYTES);
}

void Device::fail(const std::string& action, int32_t code, const std::string& reason) const {
  const ErrorKind kind =
      code == TESSERA_OUT_OF_MEMORY ? ErrorKind::OutOfMemory : ErrorKind::DeviceFailed;
  throw Error(kind, "device '" + name_ + "'",
              "backend '" + plugin_->name() + "' could not " + action + ": " + reason);
}

template <class Call>
void Device::call(const char* action, const Call& body) const {
  const Status status = call_plugin(body);
  if (!status.is_fine()) fail(action, status.code, status.message);
}

std::string Device::explain_unusable() const {
  if (plugin_->is_forked()) {
    return "it was opened before this process was forked, and only the parent process can use it";
  }
  const Status status =
      call_plugin([&](tessera_error* error) { return abi_->check_usable(abi_->self, error); });
  return status.is_fine() ? "" : status.message;
}

void Device::synchronise_queue(void* queue) const {
  call("finish its work",
       [&](tessera_error* error) { return abi_->synchronise_queue(abi_->self, queue, error); });
}

void Device::synchronise_event(void* event) const {
  call("finish its work",
       [&](tessera_error* error) { return abi_->synchronise_event(abi_->self, event, error); });
}

void Device::record_event(void* queue, void* event) const {
  call("record an event",
       [&](tessera_error* error) { return abi_->record_event(abi_->self, queue, event, error); });
}

void Device::wait_event(void* queue, void* event) const {
  call("wait for an event",
       [&](tessera_error* error) { return abi_->wait_event(abi_->self, queue, event, error); });
}

double Device::elapsed_seconds(void* begin, void* end) const {
  double seconds = 0;
  call("tell the time between two events", [&](tessera_error* error) {
    return abi_->elapsed_seconds(abi_->self, begin, end, &seconds, error);
  });
  return seconds;
}

void Device::copy_to_device(void* queue, const void* from, const tessera_device_position& to,
                            int64_t bytes) const {
  if (bytes == 0) return;
  call("copy from the host", [&](tessera_error* error) {
    return abi_->copy_to_device(abi_->self, queue, from, &to, bytes, error);
  });
}

void Device::copy_to_host(void* queue, const tessera_device_position& from, void* to,
                          int64_t bytes) const {
  if (bytes == 0) return;
  call("copy to the host", [&](tessera_error* error) {
    return abi_->copy_to_host(abi_->self, queue, &from, to, bytes, error);
  });
}

void Device::copy(void* queue, const tessera_device_position& from,
                  const tessera_device_position& to, int64_t bytes) const {
  if (bytes == 0) return;
  call("copy within its memory", [&](tessera_error* error) {
    return abi_->copy(abi_->self, queue, &from, &to, bytes, error);
  });
}

DeviceMemory::DeviceMemory(Device device, int64_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  // Null is no memory, and some devices give none for 0 bytes.
  const std::string action = "allocate " + std::to_string(bytes) + " bytes";
  device_.call(action.c_str(), [&](tessera_error* error) {
    return device_.abi().allocate(device_.abi().self, std::max<int64_t>(bytes, 1), &handle_, error);
  });
  if (handle_ == nullptr) device_.fail(action, TESSERA_DEVICE_FAILED, "it gave a null handle");
}

DeviceMemory::~DeviceMemory() {
  if (handle_ == nullptr || device_.plugin().is_forked()) return;
  call_plugin([&](tessera_error*) {
    device_.abi().release_memory(device_.abi().self, handle_);
    return TESSERA_OK;
  });
}

DeviceQueue::DeviceQueue(Device device) : device_(std::move(device)) {
  device_.call("create a queue", [&](tessera_error* error) {
    return device_.abi().create_queue(device_.abi().self, &queue_, error);
  });
  if (queue_ == nullptr) {
    device_.fail("create a queue", TESSERA_DEVICE_FAILED, "it gave a null queue");
  }
}

DeviceQueue::~DeviceQueue() {
  if (queue_ == nullptr || device_.plugin().is_forked()) return;
  call_plugin([&](tessera_error*) {
    device_.abi().release_queue(device_.abi().self, queue_);
    return TESSERA_OK;
  });
}

DeviceEvent::DeviceEvent(Device device) : device_(std::move(device)) {
  device_.call("create an event", [&](tessera_error* error) {
    return device_.abi().create_event(device_.abi().self, &event_, error);
  });
  if (event_ == nullptr) {
    device_.fail("create an event", TESSERA_DEVICE_FAILED, "it gave a null event");
  }
}

DeviceEvent::~DeviceEvent() {
  if (event_ == nullptr || device_.plugin().is_forked()) return;
  call_plugin([&](tessera_error*) {
    device_.abi().release_event(device_.abi().self, event_);
    return TESSERA_OK;
  });
}

int32_t copy_to_device(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error) {
  if (to->bytes == 0) return TESSERA_OK;
  const tessera_device_interface& device = *static_cast<const DeviceCopy*>(self)->device;
  return device.copy_to_device(device.self, context->queue, from->data, &position_of(*to),
                               to->bytes, error);
}

int32_t copy_to_host(void* self, tessera_run_context* context, const tessera_buffer* from,
                     const tessera_buffer* to, tessera_error* error) {
  if (to->bytes == 0) return TESSERA_OK;
  const tessera_device_interface& device = *static_cast<const DeviceCopy*>(self)->device;
  return device.copy_to_host(device.self, context->queue, &position_of(*from), to->data, to->bytes,
                             error);
}

int32_t copy_from_peer(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error) {
  if (to->bytes == 0) return TESSERA_OK;
  const auto& copy = *static_cast<const DeviceCopy*>(self);
  return copy.device->copy_from_peer(copy.device->self, context->queue, copy.peer,
                                     &position_of(*from), &position_of(*to), to->bytes, error);
}

int32_t copy_on_device(void* self, tessera_run_context* context, const tessera_buffer* from,
                       const tessera_buffer* to, tessera_error* error) {
  if (to->bytes == 0) return TESSERA_OK;
  const tessera_device_interface& device = *static_cast<const DeviceCopy*>(self)->device;
  return device.copy(device.self, context->queue, &position_of(*from), &position_of(*to), to->bytes,
                     error);
}

}  // namespace tessera
