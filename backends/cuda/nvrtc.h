// The runtime compiler of CUDA (NVRTC), opened on demand. It needs neither a GPU nor a driver. Its
// functions are declared in nvrtc.cc, so no header of CUDA is needed.
#pragma once

#include <memory>
#include <span>
#include <string>

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

}  // namespace tessera::cuda
