// Finds causes that make models slow, or leave them to the reference: turns the examination of
// `tessera doctor` into a list of checks, each fine or a finding with a remedy. Pure;
// doctor_command.cc examines, and doctor_report.cc prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/environment.h"
#include "cli/json_output.h"
#include "cli/machine_state.h"
#include "cli/text_table.h"
#include "tessera/cache.h"
#include "tessera/tessera.h"

namespace tessera::cli {

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
