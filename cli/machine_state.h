// What the system says of the machine, and of what it leaves to this process; for `tessera doctor`.
// base/memory.h and base/processor.h are what the runtime itself decides by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::cli {

// Something that may be limited.
template <class T>
struct Limit {
  bool is_known = false;
  std::optional<T> value = {};  // nullopt: not known, or no limit

  bool operator==(const Limit&) const = default;
};

// "" and nullopt: not known.
struct MachineState {
  std::string processor;
  // Those that kernels of Tessera or of libraries use, as /proc/cpuinfo writes them.
  std::vector<std::string> instruction_sets;
  // Whether all kernels for x86-64 that are faster than the baseline can run; nullopt on other
  // processors.
  std::optional<bool> has_avx2;
  std::optional<int64_t> cores;         // that are online
  std::optional<int64_t> usable_cores;  // on which this process may run (its affinity mask)
  // Of the control group of this process or one around it: how many processors' time it may use.
  Limit<double> quota;
  std::vector<std::string> governors;  // each once
  std::string frequency_driver;
  // Processors that other processes use, on average.
  std::optional<double> busy_by_others;
  std::string huge_pages;  // "always", "madvise", "never"
  std::optional<bool> flushes_denormals;
  std::optional<int64_t> machine_bytes;
  std::optional<int64_t> available_bytes;  // that this process can still allocate
  Limit<int64_t> group_bytes;              // of the control group or one around it
  // Soft limits (ulimit).
  Limit<int64_t> open_files;
  Limit<int64_t> locked_bytes;
  Limit<int64_t> address_space_bytes;
};

// Takes a fifth of a second, in which it watches what other processes do.
MachineState read_machine_state();

// Reads instruction sets, cores, quota, governors, huge pages and the memory of the control group
// from the files below `root`/proc and `root`/sys. What is missing there, or is not as expected,
// stays unknown.
void read_machine_files(const std::filesystem::path& root, MachineState& state);

}  // namespace tessera::cli
