// Copies tensors to and from devices that have memory of their own, one at a time: for constants
// and for checks. The copies of a run are steps of its plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/layouts.h"
#include "base/threads/parallel.h"

namespace tessera {

// Returns memory of `device` with `bytes` bytes of `data`; get() is its handle. Waits until they
// are copied. Throws DeviceFailed or OutOfMemory, naming the device.
std::shared_ptr<const void> copied_to_device(const Device& device, const void* data, int64_t bytes);

// A buffer of a tensor at `position` in memory of `device`; both must outlive it, and `type` too.
tessera_buffer buffer_on_device(const Device& device, const TensorType& type, int64_t bytes,
                                tessera_device_position& position, int32_t request);

// Returns memory of the device of `layout` with a tensor of `type` in that layout. `elements` are
// dense and row-major. Throws like copied_to_device(), and at `location` if a conversion fails.
std::shared_ptr<const void> stored_on_device(const LayoutTable& layouts, LayoutId layout,
                                             const TensorType& type, const void* elements,
                                             const std::string& location, ThreadPool& pool);

}  // namespace tessera
