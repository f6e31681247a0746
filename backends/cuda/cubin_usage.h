// The resources of a multiprocessor that the kernels of a cubin need.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera::cuda {

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
