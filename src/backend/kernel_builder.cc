#include "backend/kernel_builder.h"

#include <utility>

#include "backend/plugin_call.h"
#include "backend/status.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The tensors that a kernel is built from and keeps.
struct AbsorbedTensors {
  explicit AbsorbedTensors(const std::vector<Value>& constants) {
    for (const Value& constant : constants) {
      const Tensor& tensor = tensors.emplace_back(elements_of(constant));
      if (!tensor.has_elements()) {
        throw Error(ErrorKind::Internal, "weight '" + constant.name + "'",
                    "a kernel is built of it after its elements were released");
      }
    }
    for (const Tensor& tensor : tensors) {
      tessera_buffer& buffer = buffers.emplace_back(tessera_buffer{});
      buffer.data = const_cast<void*>(tensor.data());
      buffer.bytes = tensor.bytes();
      buffer.data_type = static_cast<int32_t>(tensor.type());
      buffer.rank = static_cast<int32_t>(tensor.rank());
      buffer.dims = tensor.dims().data();
    }
  }

  std::vector<Tensor> tensors;
  std::vector<tessera_buffer> buffers;
};

void check_kernel(const tessera_kernel& kernel, const tessera_candidate& candidate,
                  const std::string& backend) {
  if (kernel.run == nullptr) {
    throw Error(ErrorKind::DeviceFailed, "backend '" + backend + "'",
                "the kernel that it built has no function to run");
  }
  if (kernel.workspace_bytes > candidate.workspace_bytes) {
    throw Error(ErrorKind::DeviceFailed, "backend '" + backend + "'",
                "the kernel that it built wants more workspace than its candidate said");
  }
}

Kernel taken_over(const tessera_kernel& kernel, const Status& status,
                  const tessera_candidate& candidate, const std::string& backend,
                  std::shared_ptr<const void> source) {
  Kernel owned(kernel, backend, std::move(source));
  if (!status.is_fine()) throw Error(status.kind(), "backend '" + backend + "'", status.message);
  check_kernel(kernel, candidate, backend);
  return owned;
}

}  // namespace

std::function<Kernel(int threads)> kernel_builder(std::shared_ptr<const tessera_candidate> abi,
                                                  std::shared_ptr<const Plugin> plugin,
                                                  std::string dense_layout,
                                                  std::vector<Value> absorbed) {
  return [abi = std::move(abi), plugin = std::move(plugin), dense_layout = std::move(dense_layout),
          absorbed = std::move(absorbed)](int threads) {
    const auto given = std::make_shared<AbsorbedTensors>(absorbed);
    tessera_build_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.dense_layout = dense_layout.empty() ? nullptr : dense_layout.c_str();
    options.absorbed = given->buffers.data();
    options.absorbed_count = static_cast<int32_t>(given->buffers.size());
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    const PluginCall call(*plugin);
    const Status status = call_plugin(
        [&](tessera_error* error) { return abi->build(abi->self, &options, &kernel, error); });
    return taken_over(kernel, status, *abi, plugin->name(), given);
  };
}

std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> kernel_loader(
    std::shared_ptr<const tessera_candidate> abi, std::shared_ptr<const Plugin> plugin) {
  if (abi->load == nullptr) return {};
  return [abi = std::move(abi), plugin = std::move(plugin)](std::shared_ptr<const void> bytes,
                                                            int64_t size) {
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    const PluginCall call(*plugin);
    const Status status = call_plugin([&](tessera_error* error) {
      return abi->load(abi->self, bytes.get(), static_cast<size_t>(size), &kernel, error);
    });
    return taken_over(kernel, status, *abi, plugin->name(), std::move(bytes));
  };
}

}  // namespace tessera
