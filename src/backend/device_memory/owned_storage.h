// Tensors in memory of a device.
#pragma once

#include <memory>
#include <vector>

#include "backend/device.h"
#include "tessera/tensor.h"

namespace tessera {

// Allocates a tensor in memory of `device`; its elements are undefined. Throws OutOfMemory or
// DeviceFailed, naming the device.
Tensor new_tensor(const Device& device, DataType type, std::vector<int64_t> dims);

// A tensor in memory of the caller, which `owner` keeps alive: `handle` is its handle in the
// device's backend.
Tensor tensor_over(const Device& device, DataType type, std::vector<int64_t> dims,
                   std::shared_ptr<void> owner, void* handle, int64_t offset_bytes);

// Whether the elements of `tensor` are in memory of `device`.
bool is_on(const Tensor& tensor, const Device& device);

// The position of elements in memory of a device.
tessera_device_position position_of(const Tensor& tensor);

}  // namespace tessera
