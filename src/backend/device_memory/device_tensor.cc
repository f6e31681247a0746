#include "backend/device_memory/device_tensor.h"

#include <utility>
#include <vector>

#include "base/errors/check.h"

namespace tessera {
namespace {

std::shared_ptr<DeviceMemory> allocate(const Device& device, int64_t bytes) {
  return std::make_shared<DeviceMemory>(device, bytes);
}

std::shared_ptr<const void> handle_of(const std::shared_ptr<DeviceMemory>& memory) {
  return {memory, memory->handle()};
}

}  // namespace

tessera_buffer buffer_on_device(const Device& device, const TensorType& type, int64_t bytes,
                                tessera_device_position& position, int32_t request) {
  tessera_buffer buffer = {};
  buffer.data = &position;
  buffer.bytes = bytes;
  buffer.data_type = static_cast<int32_t>(type.element);
  buffer.rank = static_cast<int32_t>(type.dims.size());
  buffer.dims = type.dims.data();
  buffer.request = request;
  buffer.device = device.index() + 1;
  return buffer;
}

std::shared_ptr<const void> copied_to_device(const Device& device, const void* data,
                                             int64_t bytes) {
  const std::shared_ptr<DeviceMemory> memory = allocate(device, bytes);
  const DeviceQueue queue(device);
  device.copy_to_device(queue.get(), data, {memory->handle(), 0}, bytes);
  device.synchronise_queue(queue.get());
  return handle_of(memory);
}

std::shared_ptr<const void> stored_on_device(const LayoutTable& layouts, LayoutId layout,
                                             const TensorType& type, const void* elements,
                                             const std::string& location, ThreadPool& pool) {
  const DeviceId id = layouts.device_of(layout);
  const Device& device = layouts.device(id);
  const LayoutId dense = layouts.default_layout(id);
  const int64_t dense_bytes = layouts.known_storage_bytes(dense, type);
  if (layout == dense) return copied_to_device(device, elements, dense_bytes);
  const DeviceQueue queue(device);
  std::vector<std::shared_ptr<DeviceMemory>> memories = {allocate(device, dense_bytes)};
  device.copy_to_device(queue.get(), elements, {memories.back()->handle(), 0}, dense_bytes);
  RunContext context(pool);
  context.set_queue(queue.get(), true);
  for (const ConversionStep& step : layouts.route(dense, layout, type)) {
    TESSERA_CHECK(step.device == id, "a layout of a device converts on the device");
    tessera_device_position source{memories.back()->handle(), 0};
    memories.push_back(allocate(device, layouts.known_storage_bytes(step.to, type)));
    tessera_device_position target{memories.back()->handle(), 0};
    convert(step, location, context,
            buffer_on_device(device, type, layouts.known_storage_bytes(step.from, type), source, 0),
            buffer_on_device(device, type, layouts.known_storage_bytes(step.to, type), target,
                             TESSERA_REQUEST_WRITE));
  }
  device.synchronise_queue(queue.get());
  return handle_of(memories.back());
}

}  // namespace tessera
