#include "microbench/device_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend/device_memory/device_tensor.h"

namespace tessera::tuning {
namespace {

using Clock = std::chrono::steady_clock;

// The runs that are timed together, after one that keeps the device busy meanwhile.
constexpr int kRuns = 4;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::shared_ptr<const void> new_memory(const Device& device, int64_t bytes) {
  const auto memory = std::make_shared<DeviceMemory>(device, bytes);
  return {memory, memory->handle()};
}

tessera_buffer host_buffer(const TensorType& type, Tensor& memory, int32_t request) {
  tessera_buffer buffer = {};
  buffer.data = memory.mutable_data();
  buffer.bytes = memory.bytes();
  buffer.data_type = static_cast<int32_t>(type.element);
  buffer.rank = static_cast<int32_t>(type.dims.size());
  buffer.dims = type.dims.data();
  buffer.request = request;
  return buffer;
}

}  // namespace

DeviceBuffers::DeviceBuffers(const LayoutTable& layouts, const Candidate& candidate,
                             const Kernel& kernel, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& outputs, ThreadPool& pool)
    : workspace_(layouts.device(candidate.device), kernel.workspace_bytes()),
      workspace_position_{workspace_.handle(), 0} {
  const Device& device = layouts.device(candidate.device);
  const size_t count = inputs.size() + outputs.size();
  types_.reserve(count);  // buffers point to types and positions
  positions_.reserve(count);
  const auto add = [&](const TensorType& type, int64_t bytes, int32_t request) {
    types_.push_back(type);
    positions_.push_back({const_cast<void*>(memory_.back().get()), 0});
    return buffer_on_device(device, types_.back(), bytes, positions_.back(), request);
  };
  for (size_t index = 0; index < inputs.size(); ++index) {
    const CandidateInput& port = candidate.inputs[index];
    const Tensor& tensor = inputs[index];
    const TensorType type{tensor.type(), tensor.dims()};
    const bool is_packed = port.pack != nullptr;
    const int64_t bytes =
        is_packed ? port.pack->bytes : layouts.known_storage_bytes(port.layout, type);
    memory_.push_back(
        is_packed ? copied_to_device(device, tensor.data(), bytes)
                  : stored_on_device(layouts, port.layout, type, tensor.data(), "input", pool));
    inputs_.push_back(add(type, bytes, 0));
  }
  for (size_t index = 0; index < outputs.size(); ++index) {
    const CandidateOutput& port = candidate.outputs[index];
    const TensorType type{outputs[index].type(), outputs[index].dims()};
    const int64_t bytes = layouts.known_storage_bytes(port.layout, type);
    const bool only_adds =
        (port.requests & TESSERA_REQUEST_WRITE) == 0 && (port.requests & TESSERA_REQUEST_ADD) != 0;
    memory_.push_back(new_memory(device, bytes));
    outputs_.push_back(add(type, bytes, only_adds ? TESSERA_REQUEST_ADD : TESSERA_REQUEST_WRITE));
  }
}

void* DeviceBench::queue_of(DeviceId device) {
  std::unique_ptr<DeviceQueue>& queue = queues_[device];
  if (!queue) queue = std::make_unique<DeviceQueue>(layouts_.device(device));
  return queue->get();
}

template <class Enqueue>
double DeviceBench::time_in_full_queue(DeviceId id, const Enqueue& enqueue) {
  const Device& device = layouts_.device(id);
  void* queue = queue_of(id);
  try {
    device.synchronise_queue(queue);
    const Clock::time_point start = Clock::now();
    enqueue(queue);
    if (!device.has_clock()) device.synchronise_queue(queue);
    const Clock::time_point after_first = Clock::now();
    const DeviceEvent begin(device);
    const DeviceEvent end(device);
    device.record_event(queue, begin.get());
    const Clock::time_point before_rest = Clock::now();
    for (int run = 0; run < kRuns; ++run) enqueue(queue);
    const double enqueueing = seconds_between(before_rest, Clock::now()) / kRuns;
    device.record_event(queue, end.get());
    device.synchronise_queue(queue);
    // Without a clock of the device: what each further run adds to the first.
    const double on_device =
        device.has_clock()
            ? device.elapsed_seconds(begin.get(), end.get()) / kRuns
            : (seconds_between(before_rest, Clock::now()) - seconds_between(start, after_first)) /
                  (kRuns - 1);
    return std::max(on_device, enqueueing);
  } catch (...) {
    queues_.erase(id);  // a queue may be useless after a failure
    throw;
  }
}

double DeviceBench::time_kernel(const Candidate& candidate, const Kernel& kernel,
                                DeviceBuffers& buffers, ThreadPool& pool) {
  RunContext context(pool);
  context.set_workspace(&buffers.workspace(), kernel.workspace_bytes());
  return time_in_full_queue(candidate.device, [&](void* queue) {
    context.set_queue(queue, true);
    kernel.run("node", context, buffers.inputs().data(), buffers.outputs().data());
  });
}

double DeviceBench::time_conversion(const ConversionStep& step, const TensorType& type,
                                    ThreadPool& pool) {
  tessera_device_position positions[2] = {};
  std::shared_ptr<const void> memories[2];
  Tensor tensors[2];
  const auto make = [&](int index, LayoutId layout, int32_t request) {
    const int64_t bytes = layouts_.known_storage_bytes(layout, type);
    const DeviceId id = layouts_.device_of(layout);
    if (id == kHostDevice) {
      tensors[index] = Tensor(DataType::UInt8, {bytes});
      // Touches the pages.
      std::memset(tensors[index].mutable_data(), 0, static_cast<size_t>(bytes));
      return host_buffer(type, tensors[index], request);
    }
    memories[index] = new_memory(layouts_.device(id), bytes);
    positions[index] = {const_cast<void*>(memories[index].get()), 0};
    return buffer_on_device(layouts_.device(id), type, bytes, positions[index], request);
  };
  const tessera_buffer from = make(0, step.from, 0);
  const tessera_buffer to = make(1, step.to, TESSERA_REQUEST_WRITE);
  RunContext context(pool);
  const auto enqueue = [&](void* queue) {
    context.set_queue(queue, true);
    tessera::convert(step, "conversion", context, from, to);
  };
  if (layouts_.device_of(step.to) != kHostDevice) return time_in_full_queue(step.device, enqueue);
  void* queue = queue_of(step.device);
  try {
    const Device& device = layouts_.device(step.device);
    enqueue(queue);
    device.synchronise_queue(queue);
    const Clock::time_point start = Clock::now();
    enqueue(queue);
    device.synchronise_queue(queue);
    return seconds_between(start, Clock::now());
  } catch (...) {
    queues_.erase(step.device);
    throw;
  }
}

}  // namespace tessera::tuning
