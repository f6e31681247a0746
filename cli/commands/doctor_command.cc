// `tessera doctor`: examines the backends, the worker, the environment, the caches and the machine,
// and says what makes models slow. Writes nothing: folders are asked, not tried.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "api/options/backends_state.h"
#include "api/options/cache_folders.h"
#include "api/options/cache_ingredients.h"
#include "api/options/environment.h"
#include "backend/catalog/catalog.h"
#include "base/files/writable_path.h"
#include "base/process/module_folder.h"
#include "base/process/trusted_code.h"
#include "cache/stored_file.h"
#include "cache/user_key.h"
#include "cli/arguments/bind_arguments.h"
#include "cli/commands/command.h"
#include "cli/process/trial_process.h"
#include "cli/reports/doctor_findings.h"
#include "microbench/worker_bench.h"
#include "price/cost_sections.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kWorkerSeconds = 5;

struct DoctorArguments {
  std::vector<std::string> backend_paths;
  std::string cache_folder;  // "": as without --cache-dir
  bool is_json = false;
};

ExaminedWorker examine_worker() {
  FoundCode found = find_program("tessera-worker");
  if (!found.refusal.empty()) return {.reason = std::move(found.refusal)};
  tuning::WorkerProbe probe = tuning::probe_worker(found.path, kWorkerSeconds);
  ExaminedWorker worker{.file = std::move(found.path), .reason = std::move(probe.reason)};
  if (worker.reason.empty()) worker.seconds = probe.seconds;
  return worker;
}

// The files of all plug-ins: those that the user names, and those of the plug-in folder that are
// trusted.
std::vector<fs::path> plugin_files(const DoctorArguments& arguments) {
  std::vector<fs::path> files;
  std::error_code failure;
  const auto add_all = [&](const fs::path& path, bool is_named) {
    if (!fs::is_directory(path, failure)) return files.push_back(path);
    for (const auto& entry : fs::directory_iterator(path, failure)) {
      if (entry.path().extension() != ".so") continue;
      const bool may_be_opened =
          is_named || look_at_code(entry.path(), trusted_owners()).refusal.empty();
      if (may_be_opened) files.push_back(entry.path());
    }
  };
  for (const std::string& path : arguments.backend_paths) add_all(path, true);
  for (const std::string& path : backend_paths_of_environment()) add_all(path, true);
  const fs::path own = plugin_folder();
  if (!own.empty() && explain_untrusted_folder(own, trusted_owners()).empty()) add_all(own, false);
  return files;
}

// Opens each plug-in in a process of its own, until one fails.
void find_faulty_plugin(const DoctorArguments& arguments, Examination& examination) {
  for (const fs::path& file : plugin_files(arguments)) {
    const std::string fault =
        explain_failed_trial([&] { Backends().load_backend(file); }, kOpeningTime);
    if (fault.empty()) continue;
    examination.plugins_fault = fault;
    examination.faulty_plugin = file;
    return;
  }
}

// Whether a file of `backends` is `path` or is in it.
bool has_plugins(const fs::path& path, const std::vector<BackendDescription>& backends) {
  std::error_code unknown;
  return std::ranges::any_of(backends, [&](const BackendDescription& backend) {
    return !backend.file.empty() && (fs::equivalent(backend.file, path, unknown) ||
                                     fs::equivalent(backend.file.parent_path(), path, unknown));
  });
}

std::vector<ExaminedBackendPath> examine_backend_paths(
    const std::vector<BackendDescription>& backends) {
  std::vector<ExaminedBackendPath> paths;
  for (const std::string& path : backend_paths_of_environment()) {
    std::error_code unknown;
    paths.push_back({.path = path,
                     .exists = fs::exists(path, unknown),
                     .has_plugins = has_plugins(path, backends)});
  }
  return paths;
}

// The innermost folder at or above `folder` that exists.
fs::path existing_folder(fs::path folder) {
  std::error_code unknown;
  folder = fs::absolute(folder, unknown);
  while (!fs::is_directory(folder, unknown) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

std::optional<int64_t> free_bytes_of(const fs::path& folder) {
  struct statvfs found = {};
  if (::statvfs(existing_folder(folder).c_str(), &found) != 0) return std::nullopt;
  return static_cast<int64_t>(found.f_bavail) * static_cast<int64_t>(found.f_frsize);
}

// Whether the file was made by this version, on this processor.
bool is_of_this_machine(const CacheFileDescription& file) {
  const std::vector<cache::Ingredient> ours = machine_ingredients();
  return std::ranges::all_of(ours, [&](const cache::Ingredient& wanted) {
    return std::ranges::any_of(file.ingredients, [&](const CacheIngredient& found) {
      return found.name == wanted.name && found.value == wanted.value;
    });
  });
}

void examine_caches(ExaminedCacheFolder& folder) {
  for (const fs::path& path : list_caches(folder.folder)) {
    try {
      const CacheFileDescription file = describe_cache(path);
      if (!is_of_this_machine(file)) {
        ++folder.other_caches;
        continue;
      }
      folder.plans += std::ranges::count_if(file.sections, [](const CacheSection& section) {
        return section.type == tuning::kPlanSection && section.content == tuning::kCostsContent;
      });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Unsupported) {
        ++folder.other_caches;
      } else if (folder.first_damage.empty()) {
        folder.first_damage = error.what();
      }
    }
  }
  folder.kept = describe_cache_folder(folder.folder);
}

// A relative path is of little use to a person who reads the report elsewhere.
fs::path complete_path(const fs::path& path) {
  std::error_code failure;
  fs::path all = fs::absolute(path, failure).lexically_normal();
  if (failure || path.empty()) return path;
  return all.has_filename() ? all : all.parent_path();
}

ExaminedCacheFolder examine_cache_folder(CacheTier tier, const fs::path& given,
                                         std::string named_by) {
  const fs::path path = complete_path(given);
  ExaminedCacheFolder folder{.tier = tier, .named_by = std::move(named_by), .folder = path};
  folder.kept.folder = path;
  if (path.empty()) return folder;
  struct stat status = {};
  folder.exists = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  folder.unwritable = explain_unwritable_folder(path);
  folder.free_bytes = free_bytes_of(path);
  if (!folder.exists) return folder;
  folder.owner = status.st_uid;
  folder.mode = status.st_mode & 07777;
  folder.untrusted = tier == CacheTier::User ? cache::explain_foreign_folder(path)
                                             : cache::explain_unsafe_folder(path);
  // find_or_make_key() only reads the key here, because it exists.
  std::error_code unknown;
  if (tier == CacheTier::User && folder.untrusted.empty() &&
      fs::exists(fs::symlink_status(path / "key", unknown))) {
    folder.key_fault = cache::find_or_make_key(path).reason;
  }
  examine_caches(folder);
  return folder;
}

bool is_set(const std::vector<EnvironmentVariable>& environment, const std::string& name) {
  return std::ranges::count(environment, name, &EnvironmentVariable::name) > 0;
}

std::string namer_of_first(const DoctorArguments& arguments,
                           const std::vector<EnvironmentVariable>& environment) {
  if (!arguments.cache_folder.empty()) return "--cache-dir";
  return is_set(environment, "TESSERA_CACHE_DIR") ? "TESSERA_CACHE_DIR" : "";
}

std::string namer_of_user(const std::vector<EnvironmentVariable>& environment) {
  const auto found = std::ranges::find(environment, "XDG_CACHE_HOME", &EnvironmentVariable::name);
  const bool is_followed = found != environment.end() && fs::path(found->value).is_absolute();
  return is_followed ? "XDG_CACHE_HOME" : "HOME";
}

std::vector<ExaminedCacheFolder> examine_cache_folders(
    const DoctorArguments& arguments, const std::vector<EnvironmentVariable>& environment) {
  const fs::path first = cache_folders({.cache = {.cache_dir = arguments.cache_folder}}).front();
  return {examine_cache_folder(CacheTier::First, first, namer_of_first(arguments, environment)),
          examine_cache_folder(CacheTier::User, user_cache_folder(), namer_of_user(environment))};
}

Examination examine(const DoctorArguments& arguments) {
  Examination examination;
  // Must be first: libraries that are opened start threads, which would count as work.
  examination.machine = read_machine_state();
  // Throws now for a path that does not exist, because a trial does not report errors.
  const Backends backends = backends_of(arguments.backend_paths);
  examination.plugins_fault =
      explain_failed_trial([&] { static_cast<void>(backends.describe()); }, kOpeningTime);
  if (examination.plugins_fault.empty()) {
    examination.backends = backends.describe();
  } else {
    find_faulty_plugin(arguments, examination);
  }
  for (const CatalogEntry& entry : catalog()) {
    if (entry.is_only_if_named) examination.only_if_named.emplace_back(entry.name);
  }
  examination.wanted_backends = backends_of_environment();
  examination.backend_paths = examine_backend_paths(examination.backends);
  examination.held_caches = backends.held_caches();
  examination.worker = examine_worker();
  examination.environment = describe_environment();
  examination.cache_folders = examine_cache_folders(arguments, examination.environment);
  return examination;
}

CommandResult run_doctor(const DoctorArguments& arguments) {
  const Examination examination = examine(arguments);
  const std::vector<Check> checks = find_faults(examination);
  return {finding_count(checks) == 0 ? kFine : kAnswerIsNo,
          arguments.is_json ? json_text(doctor_json(examination, checks))
                            : doctor_text(checks, stdout_style())};
}

}  // namespace

Command make_doctor_command(CommandOptions command) {
  const auto arguments = std::make_shared<DoctorArguments>();
  add_backend_path_option(command, arguments->backend_paths);
  command.add_option("--cache-dir", arguments->cache_folder,
                     "DIR: examine this folder of caches in place of the working folder");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer("Example:\n  tessera doctor --json");
  return [arguments] { return run_doctor(*arguments); };
}

}  // namespace tessera::cli
