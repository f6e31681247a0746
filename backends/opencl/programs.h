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

// What a program is compiled from.
struct ProgramSource {
  std::string text;
  // Quotients and square roots of float32 are rounded correctly, if the device can do it.
  bool is_exact = false;

  auto operator<=>(const ProgramSource&) const = default;
};

// The programs that one device has loaded. Thread-safe.
class Programs {
 public:
  // A blob is used only for the same device (`facts`) and driver.
  Programs(std::shared_ptr<const Runtime> runtime, Shared<cl_context> context, cl_device_id device,
           const DeviceFacts& facts, Blobs blobs)
      : runtime_(std::move(runtime)),
        context_(std::move(context)),
        device_(device),
        identity_(facts.name + "\n" + facts.driver),
        divides_exactly_(facts.divides_exactly),
        blobs_(blobs) {}

  // The program with this source. Throws Failure (TESSERA_DEVICE_FAILED) with the compiler's first
  // message if it cannot be built.
  Shared<cl_program> get(const ProgramSource& source);

  // The programs with these sources as bytes, for accept() in another process; nullopt if the
  // driver does not give its binaries.
  std::optional<std::string> save(const std::vector<ProgramSource>& sources);
  // Takes binaries that save() returned. Those that the driver refuses are compiled again.
  void accept(std::string_view bytes);

  // How many programs this process has compiled from source, for all devices.
  static uint64_t built_count();

 private:
  std::string options_of(const ProgramSource& source) const;
  std::string key_of(const ProgramSource& source) const;
  // Null if the driver refuses the binary.
  Shared<cl_program> load(const std::string& binary, const std::string& options);
  Shared<cl_program> compile(const ProgramSource& source);
  std::optional<std::string> binary_of(cl_program program);
  std::string build_log(cl_program program);

  std::shared_ptr<const Runtime> runtime_;
  Shared<cl_context> context_;
  cl_device_id device_;
  std::string identity_;
  bool divides_exactly_;
  Blobs blobs_;
  std::mutex mutex_;
  std::map<ProgramSource, Shared<cl_program>> programs_;
  std::map<std::string, std::string> accepted_;  // binaries by key
};

}  // namespace tessera::opencl
