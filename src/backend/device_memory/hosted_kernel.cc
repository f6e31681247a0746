#include "backend/device_memory/hosted_kernel.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "backend/contract/status.h"
#include "backend/device_memory/device_tensor.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Behind every buffer on the device, to find kernels that write too far.
constexpr int64_t kGuardBytes = 256;
constexpr char kGuardByte = 0x5A;

TensorType type_of(const tessera_buffer& buffer) {
  return {static_cast<DataType>(buffer.data_type), {buffer.dims, buffer.dims + buffer.rank}};
}

struct Port {
  LayoutId layout;
  bool is_pack = false;
  int in_place_input = -1;
};

// One tensor of a run, in memory of the device.
class HostedTensor {
 public:
  // `bytes` as `layout` stores it.
  HostedTensor(const Device& device, void* queue, TensorType type, int64_t bytes)
      : device_(device),
        queue_(queue),
        type_(std::move(type)),
        bytes_(bytes),
        memory_(std::make_unique<DeviceMemory>(device, bytes + kGuardBytes)),
        position_{memory_->handle(), 0} {
    const std::vector<char> guard(static_cast<size_t>(bytes_ + kGuardBytes), kGuardByte);
    device_.copy_to_device(queue_, guard.data(), position_, bytes_ + kGuardBytes);
    device_.synchronise_queue(queue_);
  }

  tessera_buffer buffer(int32_t request) {
    return buffer_on_device(device_, type_, bytes_, position_, request);
  }
  void upload(const void* data) { device_.copy_to_device(queue_, data, position_, bytes_); }
  std::vector<char> download() const { return first_bytes(bytes_); }
  bool is_guard_intact() const {
    const std::vector<char> found = first_bytes(bytes_ + kGuardBytes);
    return std::all_of(found.begin() + bytes_, found.end(),
                       [](char byte) { return byte == kGuardByte; });
  }

 private:
  // Copies begin at offset 0, because a device may want aligned offsets.
  std::vector<char> first_bytes(int64_t count) const {
    std::vector<char> bytes(static_cast<size_t>(count));
    device_.copy_to_host(queue_, position_, bytes.data(), count);
    device_.synchronise_queue(queue_);
    return bytes;
  }

  const Device& device_;
  void* queue_;
  TensorType type_;
  int64_t bytes_;
  std::unique_ptr<DeviceMemory> memory_;
  tessera_device_position position_;
};

class HostedKernel {
 public:
  HostedKernel(std::shared_ptr<const Kernel> kernel, const Candidate& candidate,
               const LayoutTable& layouts)
      : kernel_(std::move(kernel)),
        layouts_(layouts),
        device_(layouts.device(candidate.device)),
        default_layout_(layouts.default_layout(candidate.device)) {
    for (const CandidateInput& port : candidate.inputs) {
      inputs_.push_back({port.layout, port.pack != nullptr});
    }
    for (const CandidateOutput& port : candidate.outputs) {
      outputs_.push_back({port.layout, false, port.in_place_input});
    }
  }

  std::string save() const { return kernel_->save(); }

  void run(ThreadPool& pool, uint64_t seed, const tessera_buffer* inputs,
           const tessera_buffer* outputs) const {
    // The queue is released first: it may still use the memory after a failure.
    std::vector<std::unique_ptr<HostedTensor>> tensors;
    std::vector<std::unique_ptr<HostedTensor>> results;
    const DeviceMemory workspace(device_, kernel_->workspace_bytes());
    const DeviceQueue queue(device_);
    RunContext context(pool);
    context.set_queue(queue.get(), true);
    context.set_random_seed(seed);
    std::vector<tessera_buffer> given;
    for (size_t index = 0; index < inputs_.size(); ++index) {
      tensors.push_back(uploaded(inputs_[index], inputs[index], queue.get(), context));
      given.push_back(tensors.back() ? tensors.back()->buffer(0) : inputs[index]);
    }
    std::vector<std::vector<char>> before;
    for (const auto& tensor : tensors) {
      before.push_back(tensor ? tensor->download() : std::vector<char>());
    }
    std::vector<tessera_buffer> wanted;
    for (size_t index = 0; index < outputs_.size(); ++index) {
      wanted.push_back(
          output(outputs_[index], outputs[index], given, queue.get(), context, results));
    }
    tessera_device_position workspace_position{workspace.handle(), 0};
    context.set_workspace(&workspace_position, kernel_->workspace_bytes());
    kernel_->run("node", context, given.data(), wanted.data());
    device_.synchronise_queue(queue.get());
    check_inputs(tensors, before, wanted);
    for (size_t index = 0; index < outputs_.size(); ++index) {
      if (outputs[index].data == nullptr) continue;
      if (results[index] && !results[index]->is_guard_intact()) {
        throw Error(ErrorKind::DeviceFailed, "node",
                    "it writes beyond the end of output " + std::to_string(index));
      }
      download(outputs_[index], wanted[index], outputs[index], queue.get(), context);
    }
  }

 private:
  int64_t bytes_in(LayoutId layout, const TensorType& type) const {
    return layouts_.known_storage_bytes(layout, type);
  }

  // Converts on the device along the route; returns the last tensor.
  std::unique_ptr<HostedTensor> converted(std::unique_ptr<HostedTensor> tensor, LayoutId from,
                                          LayoutId to, const TensorType& type, void* queue,
                                          RunContext& context) const {
    for (const ConversionStep& step : layouts_.route(from, to, type)) {
      auto next = std::make_unique<HostedTensor>(device_, queue, type, bytes_in(step.to, type));
      convert(step, "conversion", context, tensor->buffer(0), next->buffer(TESSERA_REQUEST_WRITE));
      device_.synchronise_queue(queue);
      tensor = std::move(next);
    }
    return tensor;
  }

  std::unique_ptr<HostedTensor> uploaded(const Port& port, const tessera_buffer& host, void* queue,
                                         RunContext& context) const {
    if (host.data == nullptr) return nullptr;
    const TensorType type = type_of(host);
    auto tensor = std::make_unique<HostedTensor>(device_, queue, type, host.bytes);
    tensor->upload(host.data);
    device_.synchronise_queue(queue);
    if (port.is_pack) return tensor;
    return converted(std::move(tensor), default_layout_, port.layout, type, queue, context);
  }

  tessera_buffer output(const Port& port, const tessera_buffer& host,
                        const std::vector<tessera_buffer>& given, void* queue, RunContext& context,
                        std::vector<std::unique_ptr<HostedTensor>>& results) const {
    results.emplace_back();
    if (host.data == nullptr) return host;
    if (host.request == TESSERA_REQUEST_IN_PLACE) {
      tessera_buffer shared = given[static_cast<size_t>(port.in_place_input)];
      shared.request = TESSERA_REQUEST_IN_PLACE;
      return shared;
    }
    const TensorType type = type_of(host);
    if (host.request == TESSERA_REQUEST_ADD) {
      results.back() = uploaded(port, host, queue, context);
    } else {
      results.back() =
          std::make_unique<HostedTensor>(device_, queue, type, bytes_in(port.layout, type));
    }
    return results.back()->buffer(host.request);
  }

  static void check_inputs(const std::vector<std::unique_ptr<HostedTensor>>& tensors,
                           const std::vector<std::vector<char>>& before,
                           const std::vector<tessera_buffer>& wanted) {
    for (size_t index = 0; index < tensors.size(); ++index) {
      if (!tensors[index]) continue;
      const void* data = tensors[index]->buffer(0).data;
      const bool is_output = std::ranges::any_of(
          wanted, [&](const tessera_buffer& buffer) { return buffer.data == data; });
      if (is_output || tensors[index]->download() == before[index]) continue;
      throw Error(ErrorKind::DeviceFailed, "node", "it changes input " + std::to_string(index));
    }
  }

  void download(const Port& port, const tessera_buffer& result, const tessera_buffer& host,
                void* queue, RunContext& context) const {
    const TensorType type = type_of(host);
    tessera_buffer current = result;
    std::vector<std::unique_ptr<HostedTensor>> between;
    for (const ConversionStep& step : layouts_.route(port.layout, default_layout_, type)) {
      between.push_back(
          std::make_unique<HostedTensor>(device_, queue, type, bytes_in(step.to, type)));
      const tessera_buffer next = between.back()->buffer(TESSERA_REQUEST_WRITE);
      convert(step, "conversion", context, current, next);
      current = next;
    }
    device_.copy_to_host(queue, *static_cast<const tessera_device_position*>(current.data),
                         host.data, host.bytes);
    device_.synchronise_queue(queue);
  }

  std::shared_ptr<const Kernel> kernel_;
  const LayoutTable& layouts_;
  Device device_;
  LayoutId default_layout_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

}  // namespace

Kernel hosted(std::shared_ptr<const Kernel> kernel, const Candidate& candidate,
              const LayoutTable& layouts) {
  const Kernel& held_kernel = *kernel;
  auto held = std::make_unique<HostedKernel>(std::move(kernel), candidate, layouts);
  tessera_kernel abi = {};
  abi.struct_size = sizeof(abi);
  abi.self = held.release();
  abi.run = [](void* self, tessera_run_context* context, const tessera_buffer* inputs,
               const tessera_buffer* outputs, tessera_error* error) {
    return serve_plugin(error, [&] {
      static_cast<const HostedKernel*>(self)->run(RunContext::pool_of(context),
                                                  context->random_seed, inputs, outputs);
    });
  };
  if (held_kernel.can_be_saved()) {
    abi.save = [](void* self, tessera_bytes_visitor visitor, void* user, tessera_error* error) {
      return serve_plugin(error, [&] {
        const std::string bytes = static_cast<const HostedKernel*>(self)->save();
        visitor(user, bytes.data(), bytes.size());
      });
    };
  }
  abi.release = [](void* self) { delete static_cast<HostedKernel*>(self); };
  return {abi, candidate.backend(), candidate.abi};
}

Candidate hosted(const Candidate& candidate, const LayoutTable& layouts) {
  if (candidate.device == kHostDevice) return candidate;
  Candidate made = candidate;
  made.device = kHostDevice;
  for (CandidateInput& port : made.inputs) port.layout = kDefaultLayout;
  for (CandidateOutput& port : made.outputs) port.layout = kDefaultLayout;
  made.workspace_bytes = 0;
  if (candidate.load) {
    made.load = [candidate, &layouts](std::shared_ptr<const void> bytes, int64_t size) {
      return hosted(std::make_shared<const Kernel>(candidate.load(std::move(bytes), size)),
                    candidate, layouts);
    };
  }
  made.build = [candidate, &layouts](int threads) {
    return hosted(std::make_shared<const Kernel>(candidate.build(threads)), candidate, layouts);
  };
  return made;
}

}  // namespace tessera
