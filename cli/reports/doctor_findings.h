// Finds causes that make models slow, or leave them to the reference: turns the examination of
// `tessera doctor` into a list of checks, each fine or a finding with a remedy. Pure;
// doctor_command.cc examines, and doctor_report.cc prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/options/environment.h"
#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/cache.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// Something that may be limited.
template <class T>
struct Limit {
  bool is_known = false;
  std::optional<T> value = {};  // nullopt: not known, or no limit

  bool operator==(const Limit&) const = default;
};

// Facts that the system tells about the machine, and about the share of this process
// (machine_state.cc). The runtime itself uses base/memory/memory.h and base/machine/processor.h.
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

// A file or folder of plug-ins that TESSERA_BACKEND_PATH names.
struct ExaminedBackendPath {
  std::string path;
  bool exists = false;
  bool has_plugins = false;
};

// The program that measures.
struct ExaminedWorker {
  std::filesystem::path file;     // "" if it was not found or must not be started
  std::string reason;             // why it is of no use; "" if it answers
  std::optional<double> seconds;  // from its start to its answer
};

// The folders of caches are searched in this order. Packs, kernels and indices of models are only
// in the user's.
enum class CacheTier : uint8_t { First, User };

struct ExaminedCacheFolder {
  CacheTier tier = CacheTier::First;
  std::string named_by;  // "--cache-dir", "HOME"; "": the working folder, which needs no name
  std::filesystem::path folder;  // "": there is none, because no variable names the user's
  bool exists = false;
  std::string unwritable;        // why nothing can be written; "" if it can, or if bind() makes it
  std::string untrusted;         // why the files in it are not trusted; "" if they are
  std::optional<int64_t> owner;  // user id
  std::optional<int64_t> mode;   // permission bits
  std::optional<int64_t> free_bytes;
  CacheFolderDescription kept;
  int64_t plans = 0;
  // Caches of another version of Tessera, another processor or instruction set.
  int64_t other_caches = 0;
  std::string first_damage;  // what is wrong with the first cache that cannot be read
  std::string key_fault;     // why the key that authenticates files is of no use, or ""
};

struct Examination {
  // How a trial process that opened all plug-ins failed; "" if it did not.
  std::string plugins_fault;
  std::filesystem::path faulty_plugin;       // the first that fails alone; "": none does
  std::vector<BackendDescription> backends;  // empty if the trial failed
  std::vector<std::string> only_if_named;    // backends that are not used unless they are named
  std::vector<std::string> wanted_backends;  // of TESSERA_BACKENDS
  std::vector<ExaminedBackendPath> backend_paths;
  ExaminedWorker worker;
  std::vector<EnvironmentVariable> environment;
  std::vector<ExaminedCacheFolder> cache_folders;
  std::vector<HeldCacheDescription> held_caches;  // what a process keeps, with its bounds
  MachineState machine;
};

struct Check {
  std::string area;     // "backends", "worker", "environment", "caches", "processor", "memory"
  std::string subject;  // what was looked at, within the area
  std::string found;
  std::string problem;  // "" if it is fine
  std::string remedy;   // what to do; "" if it is fine
};

// Permission bits as chmod takes them: "0700".
std::string octal_text(int64_t mode);

// All checks in the order in which they are printed.
std::vector<Check> find_faults(const Examination& examination);

// The number of checks with a problem.
size_t finding_count(const std::vector<Check>& checks);

// All checks by area, then each finding with its remedy. Nothing is shortened: long text continues
// on the next line.
std::string doctor_text(const std::vector<Check>& checks, const TextStyle& style);

// The examination and the checks that find_faults() derived from it.
Json doctor_json(const Examination& examination, const std::vector<Check>& checks);

}  // namespace tessera::cli
