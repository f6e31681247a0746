// Facts that the system tells about the machine, and about the share of this process; for `tessera
// doctor`. The runtime itself uses base/memory.h and base/processor.h.
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

// Members that are "" or nullopt are not known.
struct MachineState {
  std::string processor;
  // The instruction sets that kernels of Tessera or of libraries use, as /proc/cpuinfo writes them.
  std::vector<std::string> instruction_sets;
  // Whether all kernels for x86-64 that are faster than the baseline can run; nullopt on other
  // processors.
  std::optional<bool> has_avx2;
  std::optional<int64_t> cores;         // that are online
  std::optional<int64_t> usable_cores;  // on which this process may run (its affinity mask)
  // The number of processors whose time the control group of this process, or one around it, may
  // use.
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
// from the files below `root`/proc and `root`/sys. Members stay unknown if their file is missing or
// not as expected.
void read_machine_files(const std::filesystem::path& root, MachineState& state);

}  // namespace tessera::cli
