// Times kernels and conversions of devices that have memory and queues of their own.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"
#include "base/threads/parallel.h"
#include "tessera/tensor.h"

namespace tessera::tuning {

// The buffers of one candidate of a device: its inputs as the device stores them.
class DeviceBuffers {
 public:
  // An input of a port with a pack is the packed bytes, others are row-major. `outputs` only give
  // the types. Throws DeviceFailed or OutOfMemory.
  DeviceBuffers(const LayoutTable& layouts, const Candidate& candidate, const Kernel& kernel,
                const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                ThreadPool& pool);

  const std::vector<tessera_buffer>& inputs() const { return inputs_; }
  const std::vector<tessera_buffer>& outputs() const { return outputs_; }
  tessera_device_position& workspace() { return workspace_position_; }

 private:
  std::vector<std::shared_ptr<const void>> memory_;
  std::vector<TensorType> types_;
  std::vector<tessera_device_position> positions_;
  std::vector<tessera_buffer> inputs_;
  std::vector<tessera_buffer> outputs_;
  DeviceMemory workspace_;
  tessera_device_position workspace_position_;
};

// Owns a queue for each device. For one thread at a time.
class DeviceBench {
 public:
  explicit DeviceBench(const LayoutTable& layouts) : layouts_(layouts) {}

  // The time that a run takes in a bulk: on the device in a full queue, or on the host to enqueue
  // it, if that takes longer. Throws what the kernel throws.
  double time_kernel(const Candidate& candidate, const Kernel& kernel, DeviceBuffers& buffers,
                     ThreadPool& pool);

  // Same as time_kernel(), for one conversion of zeros; if the result is in the host's memory, the
  // time until the host knows that it is there, because somebody waits for it.
  double time_conversion(const ConversionStep& step, const TensorType& type, ThreadPool& pool);

 private:
  void* queue_of(DeviceId device);
  template <class Enqueue>
  double time_in_full_queue(DeviceId device, const Enqueue& enqueue);

  const LayoutTable& layouts_;
  std::map<DeviceId, std::unique_ptr<DeviceQueue>> queues_;
};

}  // namespace tessera::tuning
