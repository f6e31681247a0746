// Programs of OpenCL: built from source once, kept as a blob, and loaded in later processes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blobs.h"
#include "runtime.h"

namespace tessera::opencl {

// The programs that one device has loaded. Thread-safe.
class Programs {
 public:
  // `identity` names the device and its driver: a blob is used only for the same ones.
  Programs(std::shared_ptr<const Runtime> runtime, Shared<cl_context> context, cl_device_id device,
           std::string identity, Blobs blobs)
      : runtime_(std::move(runtime)),
        context_(std::move(context)),
        device_(device),
        identity_(std::move(identity)),
        blobs_(blobs) {}

  // The program with this source. Throws Failure (TESSERA_DEVICE_FAILED) with the compiler's first
  // message if it cannot be built.
  Shared<cl_program> get(const std::string& source);

  // The programs with these sources as bytes, for accept() in another process; nullopt if the
  // driver does not give its binaries.
  std::optional<std::string> save(const std::vector<std::string>& sources);
  // Takes binaries that save() returned. Those that the driver refuses are compiled again.
  void accept(std::string_view bytes);

  // How many programs this process has compiled from source, for all devices.
  static uint64_t built_count();

 private:
  std::string key_of(const std::string& source) const;
  Shared<cl_program> load(const std::string& binary);  // null if the driver refuses the binary
  Shared<cl_program> compile(const std::string& source);
  std::optional<std::string> binary_of(cl_program program);
  std::string build_log(cl_program program);

  std::shared_ptr<const Runtime> runtime_;
  Shared<cl_context> context_;
  cl_device_id device_;
  std::string identity_;
  Blobs blobs_;
  std::mutex mutex_;
  std::map<std::string, Shared<cl_program>> programs_;  // by source
  std::map<std::string, std::string> accepted_;         // binaries by key
};

}  // namespace tessera::opencl
