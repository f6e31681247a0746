// Memory of a device that has memory of its own, such as an accelerator, as tensors share it.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

// A device as DLPack (the array exchange format of Python's libraries) names it; type 0: no name.
struct DlpackDevice {
  int32_t type = 0;  // DLDeviceType
  int32_t id = 0;
  bool operator==(const DlpackDevice&) const = default;
};

// One block of memory of a device. Thread-safe, but concurrent copies to the same bytes are a race.
class DeviceStorage {
 public:
  virtual ~DeviceStorage() = default;

  // As BackendDescription::devices has it: "mylib:1".
  virtual const std::string& device() const = 0;
  // Identifies the device; equal for all its memory in this process. Devices of plug-ins that were
  // opened twice have one name, but two identities.
  virtual const void* device_identity() const = 0;
  virtual DlpackDevice dlpack_device() const = 0;
  // The handle of the memory in the API of the device's backend. Only that backend and users of the
  // same API can interpret it.
  virtual void* handle() const = 0;
  virtual int64_t bytes() const = 0;
  // The offset of a tensor that kernels read or write must be a multiple of this.
  virtual int64_t alignment_bytes() const = 0;

  // Both wait until the bytes are copied. Throw DeviceFailed, naming the device.
  virtual void copy_to_host(int64_t offset_bytes, void* to, int64_t bytes) const = 0;
  virtual void copy_from_host(int64_t offset_bytes, const void* from, int64_t bytes) = 0;
};

}  // namespace tessera
