#include "backend/device_memory/owned_storage.h"

#include <limits>
#include <utility>

#include "tessera/error.h"

namespace tessera {
namespace {

// Memory that the device allocated (then `owner` is a DeviceMemory), or that the caller did.
class OwnedStorage final : public DeviceStorage {
 public:
  OwnedStorage(Device device, std::shared_ptr<void> owner, void* handle, int64_t bytes)
      : device_(std::move(device)), owner_(std::move(owner)), handle_(handle), bytes_(bytes) {}

  const std::string& device() const override { return device_.name(); }
  const void* device_identity() const override { return &device_.abi(); }
  DlpackDevice dlpack_device() const override {
    return {device_.abi().dlpack_type, device_.abi().dlpack_id};
  }
  void* handle() const override { return handle_; }
  int64_t bytes() const override { return bytes_; }
  int64_t alignment_bytes() const override { return device_.alignment_bytes(); }

  void copy_to_host(int64_t offset_bytes, void* to, int64_t bytes) const override {
    check_usable();
    const DeviceQueue queue(device_);
    device_.copy_to_host(queue.get(), {handle_, offset_bytes}, to, bytes);
    device_.synchronise_queue(queue.get());
  }

  void copy_from_host(int64_t offset_bytes, const void* from, int64_t bytes) override {
    check_usable();
    const DeviceQueue queue(device_);
    device_.copy_to_device(queue.get(), from, {handle_, offset_bytes}, bytes);
    device_.synchronise_queue(queue.get());
  }

 private:
  void check_usable() const {
    const std::string reason = device_.explain_unusable();
    if (reason.empty()) return;
    throw Error(ErrorKind::DeviceFailed, "device '" + device_.name() + "'", reason);
  }

  Device device_;
  std::shared_ptr<void> owner_;
  void* handle_;
  int64_t bytes_;
};

}  // namespace

Tensor new_tensor(const Device& device, DataType type, std::vector<int64_t> dims) {
  const int64_t bytes = tensor_bytes(type, dims);
  auto memory = std::make_shared<DeviceMemory>(device, bytes);
  void* const handle = memory->handle();
  return Tensor::on_device(
      type, std::move(dims),
      std::make_shared<OwnedStorage>(device, std::move(memory), handle, bytes));
}

Tensor tensor_over(const Device& device, DataType type, std::vector<int64_t> dims,
                   std::shared_ptr<void> owner, void* handle, int64_t offset_bytes) {
  const int64_t bytes = tensor_bytes(type, dims);
  if (offset_bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - offset_bytes) {
    throw Error(ErrorKind::InvalidArgument, "tensor " + dims_text(dims),
                "expected an offset of 0 or more bytes, found " + std::to_string(offset_bytes));
  }
  // Only the caller knows how large its memory is.
  return Tensor::on_device(
      type, std::move(dims),
      std::make_shared<OwnedStorage>(device, std::move(owner), handle, offset_bytes + bytes),
      offset_bytes);
}

bool is_on(const Tensor& tensor, const Device& device) {
  return tensor.device_storage() != nullptr &&
         tensor.device_storage()->device_identity() == &device.abi();
}

tessera_device_position position_of(const Tensor& tensor) {
  return {tensor.device_storage()->handle(), tensor.offset_bytes()};
}

}  // namespace tessera
