// The runtime compiler of CUDA (NVRTC), opened on demand. It needs neither a GPU nor a driver. Its
// functions are declared in nvrtc.cc, so no header of CUDA is needed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tessera::cuda {

struct NvrtcFunctions;

// A program as machine code for one architecture.
struct Cubin {
  std::string bytes;  // an ELF file
  std::string log;    // what the compilers say, with the resources of each kernel
};

// The opened library. Thread-safe.
class Nvrtc {
 public:
  // Opens libnvrtc.so.13 or libnvrtc.so.12: from `folder` (the wheel nvidia-cuda-nvrtc has it in
  // nvidia/cu13/lib), or, if it is empty, where the system finds libraries. Throws Failure
  // (TESSERA_UNSUPPORTED) with the reason if there is none.
  explicit Nvrtc(const std::string& folder = "");
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  // "13.5".
  const std::string& version() const { return version_; }

  // Compiles CUDA C++ for an architecture ("sm_90") with these options besides. Throws Failure:
  // TESSERA_UNSUPPORTED if this compiler does not know the architecture, else TESSERA_DEVICE_FAILED
  // with the beginning of the log.
  Cubin compile(const std::string& source, const std::string& architecture,
                std::span<const std::string> options = {}) const;

 private:
  std::unique_ptr<NvrtcFunctions> functions_;
  std::string version_;
};

// The resources of a multiprocessor that a kernel of a cubin needs.
struct KernelUsage {
  int64_t registers = 0;          // for each thread
  int64_t stack_bytes = 0;        // local memory for each thread
  int64_t spill_store_bytes = 0;  // the part of the stack for spilled registers
  int64_t spill_load_bytes = 0;
  int64_t shared_bytes = 0;  // for each block

  bool operator==(const KernelUsage&) const = default;
};

// Returns the usage of each kernel, from the log of a compilation with --ptxas-options=-v. Ignores
// other lines.
std::map<std::string, KernelUsage> usage_from_log(std::string_view log);

}  // namespace tessera::cuda
