// What the kernels of a cubin need of a multiprocessor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tessera::cuda {

struct KernelUsage {
  int64_t registers = 0;          // for each thread
  int64_t stack_bytes = 0;        // local memory for each thread
  int64_t spill_store_bytes = 0;  // the part of it that holds registers
  int64_t spill_load_bytes = 0;
  int64_t shared_bytes = 0;  // for each block

  bool operator==(const KernelUsage&) const = default;
};

// By kernel, from the log of a compilation with --ptxas-options=-v. Lines that are something else
// are left out.
std::map<std::string, KernelUsage> usage_from_log(std::string_view log);

}  // namespace tessera::cuda
