#include "fake_kernels.h"

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace tessera::fake {
namespace {

using plugin::Buffer;
using plugin::Failure;
using plugin::Kernel;
using plugin::Node;
using plugin::RunContext;
using Buffers = std::span<const Buffer>;
using Addresses = std::span<std::byte* const>;

// Copies of buffers of a call, whose dimensions are valid only during the call.
class BufferCopies {
 public:
  explicit BufferCopies(Buffers buffers) : buffers_(buffers.begin(), buffers.end()) {
    for (const Buffer& buffer : buffers) {
      dims_.emplace_back(buffer.sizes().begin(), buffer.sizes().end());
    }
  }

  size_t size() const { return buffers_.size(); }
  // Buffer `index` at `address`.
  Buffer at(size_t index, std::byte* address) const {
    Buffer buffer = buffers_[index];
    buffer.data = address;
    buffer.device = 0;
    buffer.dims = dims_[index].data();
    return buffer;
  }
  // Whether nothing reads the output, so that it has no memory.
  bool is_unwanted(size_t index) const { return buffers_[index].data == nullptr; }

 private:
  std::vector<Buffer> buffers_;
  std::vector<std::vector<int64_t>> dims_;
};

void run_whole_loop(tessera_run_context* /*context*/, int64_t count, int64_t /*grain*/,
                    void (*body)(void* argument, int64_t begin, int64_t end), void* argument) {
  if (count > 0) body(argument, 0, count);
}

// The context of a kernel on the thread of a queue: that of the call is valid only during the call.
tessera_run_context serial_context(const RunContext& of_call) {
  tessera_run_context context = {};
  context.struct_size = sizeof(context);
  context.threads = 1;
  context.is_training = of_call.is_training() ? 1 : 0;
  context.random_seed = of_call.random_seed();
  context.parallel_for = run_whole_loop;
  return context;
}

// How a thread computes with floating-point numbers: rounding, and whether it sets denormal numbers
// to zero. The thread of a queue computes as the one that enqueued, whose rule the user can choose.
class FloatRules {
 public:
  FloatRules() { std::fegetenv(&rules_); }
  void apply() const { std::fesetenv(&rules_); }

 private:
  std::fenv_t rules_;
};

void run_reference(const ReferenceKernel& kernel, tessera_run_context* context, Buffers inputs,
                   Buffers outputs) {
  const auto of_node = [](const std::vector<int32_t>& ports, Buffers buffers) {
    std::vector<Buffer> ordered;
    for (const int32_t port : ports) {
      ordered.push_back(port < 0 ? Buffer{} : buffers[static_cast<size_t>(port)]);
    }
    return ordered;
  };
  const std::vector<Buffer> from = of_node(kernel.inputs, inputs);
  const std::vector<Buffer> to = of_node(kernel.outputs, outputs);
  tessera_error error = plugin::detail::empty_error();
  const int32_t status =
      kernel.kernel->run(kernel.kernel->self, context, from.data(), to.data(), &error);
  plugin::detail::throw_on_failure(status, error);
}

class DeviceKernel : public Kernel {
 public:
  DeviceKernel(const ReferenceKernel& kernel, std::shared_ptr<FakeDevice> device)
      : kernel_(std::make_shared<const ReferenceKernel>(kernel)),
        device_(std::move(device)),
        name_(std::make_shared<const std::string>(kernel.name + " on " + device_->name())) {}

  void run(RunContext& context, Buffers inputs, Buffers outputs) override {
    Work work;
    work.name = name_;
    work.counter = &fake_counters::kernels;
    for (const Buffer& buffer : inputs) work.ranges.push_back(device_->range(buffer, false));
    for (const Buffer& buffer : outputs) work.ranges.push_back(device_->range(buffer, true));
    work.body = [kernel = kernel_, own = serial_context(context), from = BufferCopies(inputs),
                 to = BufferCopies(outputs), rules = FloatRules()](Addresses addresses) {
      rules.apply();
      tessera_run_context serial = own;
      execute(*kernel, serial, from, to, addresses);
    };
    device_->enqueue(context.queue(), std::move(work));
  }

 private:
  static void execute(const ReferenceKernel& kernel, tessera_run_context& context,
                      const BufferCopies& from, const BufferCopies& to, Addresses addresses) {
    std::vector<Buffer> inputs;
    std::vector<Buffer> outputs;
    std::vector<std::vector<std::byte>> unwanted(to.size());
    for (size_t index = 0; index < from.size(); ++index) {
      inputs.push_back(from.at(index, addresses[index]));
    }
    for (size_t index = 0; index < to.size(); ++index) {
      Buffer output = to.at(index, addresses[from.size() + index]);
      if (to.is_unwanted(index)) {
        unwanted[index].resize(
            static_cast<size_t>(std::max<int64_t>(1, output.type().dense_bytes())));
        output.data = unwanted[index].data();
      }
      outputs.push_back(output);
    }
    run_reference(kernel, &context, inputs, outputs);
  }

  std::shared_ptr<const ReferenceKernel> kernel_;
  std::shared_ptr<FakeDevice> device_;
  std::shared_ptr<const std::string> name_;
};

class HostKernel : public Kernel {
 public:
  explicit HostKernel(const ReferenceKernel& kernel, std::chrono::nanoseconds duration)
      : kernel_(kernel),
        duration_(duration),
        name_(std::make_shared<const std::string>(kernel.name + " on the processor")) {}

  void run(RunContext& context, Buffers inputs, Buffers outputs) override {
    const auto end = std::chrono::steady_clock::now() + duration_;
    for (const Buffer& buffer : inputs) note_host_access(name_, buffer.data, buffer.bytes, false);
    for (const Buffer& buffer : outputs) note_host_access(name_, buffer.data, buffer.bytes, true);
    run_reference(kernel_, context.handle(), inputs, outputs);
    while (std::chrono::steady_clock::now() < end) {
    }
  }

 private:
  ReferenceKernel kernel_;
  std::chrono::nanoseconds duration_;
  std::shared_ptr<const std::string> name_;
};

plugin::ConvertFunction reversing(std::shared_ptr<FakeDevice> device, const std::string& name) {
  auto text = std::make_shared<const std::string>(name + " on " + device->name());
  return [device = std::move(device), text](RunContext& context, const Buffer& from,
                                            const Buffer& to) {
    Work work;
    work.name = text;
    work.counter = &fake_counters::conversions;
    work.ranges = {device->range(from, false), device->range(to, true)};
    work.body = [count = from.elements(),
                 size = plugin::element_bytes(from.data_type)](Addresses addresses) {
      for (int64_t index = 0; index < count; ++index) {
        std::memcpy(addresses[1] + (count - 1 - index) * size, addresses[0] + index * size,
                    static_cast<size_t>(size));
      }
    };
    device->enqueue(context.queue(), std::move(work));
  };
}

}  // namespace

ReferenceKernel reference_kernel_of(const plugin::Graph& graph, const Node& node,
                                    const plugin::Candidate& candidate) {
  tessera_kernel made = {};
  tessera_error error = plugin::detail::empty_error();
  const int32_t status = graph.host()->reference_kernel(graph.handle(), node.id(), &made, &error);
  plugin::detail::throw_on_failure(status, error);
  ReferenceKernel kernel;
  kernel.kernel = {new tessera_kernel(made), [](const tessera_kernel* held) {
                     held->release(held->self);
                     delete held;
                   }};
  kernel.name = "kernel " + std::string(node.op()) + " '" + std::string(node.name()) + "'";
  for (size_t index = 0; index < node.input_count(); ++index) {
    const auto found =
        std::ranges::find(candidate.inputs, node.input(index).id(), &plugin::InputPort::value);
    const bool is_port = node.input(index).is_present();
    kernel.inputs.push_back(is_port ? static_cast<int32_t>(found - candidate.inputs.begin()) : -1);
  }
  int32_t port = 0;
  for (size_t index = 0; index < node.output_count(); ++index) {
    kernel.outputs.push_back(node.output(index).is_present() ? port++ : -1);
  }
  return kernel;
}

std::unique_ptr<Kernel> device_kernel(const ReferenceKernel& kernel,
                                      std::shared_ptr<FakeDevice> device) {
  return std::make_unique<DeviceKernel>(kernel, std::move(device));
}

std::unique_ptr<Kernel> host_kernel(const ReferenceKernel& kernel,
                                    std::chrono::nanoseconds duration) {
  return std::make_unique<HostKernel>(kernel, duration);
}

plugin::Layout reversed_layout(std::shared_ptr<FakeDevice> device, int32_t index) {
  return {.name = kReversed,
          .device = index,
          .storage_bytes = [](const plugin::Type& type) -> std::optional<int64_t> {
            if (plugin::element_bytes(type.data_type) == 0) return std::nullopt;
            return type.dense_bytes();
          },
          .to_default = reversing(device, "conversion from reversed"),
          .from_default = reversing(device, "conversion to reversed")};
}

}  // namespace tessera::fake
