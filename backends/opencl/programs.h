// Programs of OpenCL: built from source once, kept as a blob, and loaded in other processes.
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

#include "runtime.h"
#include "tessera/backend_blobs.h"

namespace tessera::opencl {

// The source and options from which a program is compiled.
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
           const DeviceFacts& facts, plugin::Blobs blobs)
      : runtime_(std::move(runtime)),
        context_(std::move(context)),
        device_(device),
        identity_(facts.name + "\n" + facts.driver),
        divides_exactly_(facts.divides_exactly),
        blobs_(blobs) {}

  // The program with this source. Threads and processes that ask for the same one at once wait for
  // one compilation, as far as the host stores blobs. Throws Failure (TESSERA_DEVICE_FAILED) with
  // the compiler's first message if it cannot be built, and the same Failure again in this process.
  // Later processes try again, because a driver may also fail for lack of space.
  Shared<cl_program> get(const ProgramSource& source);

  // The programs with these sources as bytes, for accept() in another process; nullopt if the
  // driver does not give its binaries.
  std::optional<std::string> save(const std::vector<ProgramSource>& sources);
  // Takes binaries that save() returned. Programs whose binary the driver refuses are compiled
  // again.
  void accept(std::string_view bytes);

  // The numbers of programs that this process has compiled and loaded, for all devices.
  static plugin::CompileCounts counts();

 private:
  struct Entry {
    std::mutex mutex;  // held while the program is loaded or compiled
    Shared<cl_program> program;
    std::optional<plugin::Failure> failure;
  };

  std::shared_ptr<Entry> entry_of(const ProgramSource& source);
  void drop_unused();
  std::string options_of(const ProgramSource& source) const;
  std::string key_of(const ProgramSource& source) const;
  std::optional<std::string> take_accepted(const std::string& key);
  // Both fill in the entry; load_stored() returns false if there is nothing that can be loaded.
  bool load_stored(const ProgramSource& source, Entry& entry);
  void compile(const ProgramSource& source, Entry& entry);
  // Null if the driver refuses the binary.
  Shared<cl_program> load(const std::string& binary, const std::string& options);
  std::optional<std::string> binary_of(cl_program program);
  std::string build_log(cl_program program);

  std::shared_ptr<const Runtime> runtime_;
  Shared<cl_context> context_;
  cl_device_id device_;
  std::string identity_;
  bool divides_exactly_;
  plugin::Blobs blobs_;
  std::mutex mutex_;  // of the members below; never held while the driver compiles
  std::map<ProgramSource, std::shared_ptr<Entry>> programs_;
  std::map<std::string, std::string> accepted_;  // binaries by key
};

}  // namespace tessera::opencl
