#include "cli/reports/doctor_findings.h"
#include "cli/output/text_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/catalog/backend_set.h"
#include "base/errors/likely_name.h"
#include "cli/output/quantities.h"
#include "cli/output/span.h"

namespace tessera::cli {
namespace {

constexpr const char* kNotKnown = "not known";

// The part of a processor that other processes may use without a finding.
constexpr double kMaxBusyByOthers = 0.25;
constexpr int64_t kMinAvailableBytes = int64_t{1} << 30;
constexpr int64_t kMinFreeBytes = int64_t{256} << 20;
// A bind opens files of packs and kernels, libraries open devices, and each worker takes a socket.
constexpr int64_t kMinOpenFiles = 256;

std::string quoted(const std::string& text) { return "'" + text + "'"; }

const BackendDescription* find_backend(const std::string& called, const Examination& examination) {
  const auto is_meant = [&](const std::string& name) { return is_same_backend_name(name, called); };
  for (const BackendDescription& backend : examination.backends) {
    if (is_meant(backend.name) || std::ranges::any_of(backend.aliases, is_meant)) return &backend;
  }
  return nullptr;
}

// --- Backends ------------------------------------------------------------------------------------

// Whether binds use the backend, if it is usable and no call names others.
bool is_wanted(const BackendDescription& backend, const Examination& examination) {
  const std::vector<std::string>& wanted = examination.wanted_backends;
  if (wanted.empty()) return std::ranges::count(examination.only_if_named, backend.name) == 0;
  return std::ranges::any_of(wanted, [&](const std::string& called) {
    return find_backend(called, examination) == &backend;
  });
}

Check check_backend(const BackendDescription& backend, const Examination& examination) {
  Check check{.area = "backends", .subject = backend.name};
  if (backend.is_usable) {
    check.found = "version " + backend.version + ", " +
                  (backend.file.empty() ? "built in" : backend.file.string());
    return check;
  }
  check.found = name(backend.status);
  // If a backend was left out of the build, or is not asked for, others do its work; check_choice()
  // reports if there are none. A refused plug-in of the user's own is broken, whatever its name is.
  const bool is_left_out = backend.status == BackendStatus::NotBuilt;
  const bool is_own = backend.status == BackendStatus::Refused &&
                      std::ranges::count(examination.only_if_named, backend.name) == 0;
  if (is_left_out || (!is_own && !is_wanted(backend, examination))) return check;
  check.problem = backend.reason.empty() ? "cannot be used" : backend.reason;
  if (!backend.file.empty()) check.found += ", " + backend.file.string();
  check.remedy = backend.remedy.empty() ? "replace the file, or remove it: 'tessera verify "
                                          "--backend FILE' checks a plug-in"
                                        : backend.remedy;
  return check;
}

// Checks that a backend faster than the reference is in use.
Check check_choice(const Examination& examination) {
  Check check{.area = "backends", .subject = "in use"};
  std::vector<std::string> fast;
  for (const BackendDescription& backend : examination.backends) {
    // The reference is the last.
    if (!backend.is_usable || &backend == &examination.backends.back()) continue;
    if (is_wanted(backend, examination)) fast.push_back(backend.name);
  }
  check.found = fast.empty() ? "the reference alone" : joined(fast) + ", the reference";
  if (!fast.empty()) return check;
  check.problem = "models run on the reference alone, which is right but slow";
  const bool is_restricted = !examination.wanted_backends.empty();
  check.remedy = is_restricted ? "unset TESSERA_BACKENDS, or name a usable backend in it"
                               : "install a library: 'tessera backends' says which, and how";
  return check;
}

// Replaces the checks of backends if opening them is not safe.
Check check_opening(const Examination& examination) {
  const std::string file = examination.faulty_plugin.string();
  const std::string opened = file.empty() ? "all plug-ins" : quoted(file);
  return {.area = "backends",
          .subject = "plug-ins",
          .found = "not opened",
          .problem = "a process that opened " + opened + " " + examination.plugins_fault +
                     ", and so does every program that opens " + (file.empty() ? "them" : "it"),
          .remedy =
              "replace or remove the plug-in, or correct what its library misses: 'tessera "
              "verify --backend " +
              (file.empty() ? "FILE" : file) + "'"};
}

Check check_backend_path(const ExaminedBackendPath& path, const Examination& examination) {
  Check check{.area = "backends", .subject = "TESSERA_BACKEND_PATH", .found = path.path};
  if (path.exists && (path.has_plugins || !examination.plugins_fault.empty())) return check;
  check.problem =
      path.exists ? quoted(path.path) + " has no plug-in" : quoted(path.path) + " does not exist";
  check.remedy = path.exists ? "name the folder that has the plug-ins (backend_*.so), or unset "
                               "TESSERA_BACKEND_PATH"
                             : "correct the path in TESSERA_BACKEND_PATH, or unset it";
  return check;
}

// --- Worker --------------------------------------------------------------------------------------

Check check_worker(const ExaminedWorker& worker) {
  Check check{.area = "worker", .subject = "tessera-worker"};
  if (worker.reason.empty()) {
    check.found = (worker.seconds ? "answers after " + time_text(*worker.seconds) + ", " : "") +
                  worker.file.string();
    return check;
  }
  check.found = worker.file.empty() ? "not found" : worker.file.string();
  check.problem =
      worker.reason + "; binding measures in its own process, which ends if a library crashes";
  check.remedy =
      "install Tessera again as a whole: tessera-worker belongs beside the program, or "
      "into bin/ beside lib/, and must be of the same version";
  return check;
}

// --- Environment ---------------------------------------------------------------------------------

void judge(const EnvironmentVariable& variable, const Examination& examination, Check& check) {
  if (variable.meaning.empty()) {
    check.problem = "Tessera reads no variable of this name" + variable.hint;
    check.remedy = "correct the name, or unset it";
  } else if (variable.name == "TESSERA_OPTIMIZE" && variable.value == "0") {
    check.problem =
        "binding measures nothing and uses no stored plan, so the choice of kernels is "
        "a guess";
    check.remedy = "unset it, or pass --optimize (optimize=True)";
  } else if (variable.name == "TESSERA_OPTIMIZE" && variable.value != "1") {
    check.problem = "expected 0 or 1, found " + quoted(variable.value) + ", which means 1";
    check.remedy = "set it to 0 or 1, or unset it";
  } else if (variable.name == "TESSERA_DUMP_KERNELS") {
    check.problem = "each bind writes its kernels into this folder, which takes time";
    check.remedy = "unset it, unless you read these files";
  } else if (variable.name == "XDG_CACHE_HOME" &&
             !std::filesystem::path(variable.value).is_absolute()) {
    check.problem = "expected an absolute path, found a relative one, which is ignored";
    check.remedy = "set it to an absolute path, or unset it";
  } else if (variable.name == "TESSERA_BACKENDS" && examination.plugins_fault.empty()) {
    std::vector<std::string> known;
    for (const BackendDescription& backend : examination.backends) known.push_back(backend.name);
    for (const std::string& wanted : examination.wanted_backends) {
      const BackendDescription* const backend = find_backend(wanted, examination);
      if (backend != nullptr && backend->is_usable) continue;
      check.problem =
          quoted(wanted) +
          (backend == nullptr ? " is no backend" + did_you_mean(wanted, known)
                              : " cannot be used (" + std::string(name(backend->status)) + ")") +
          ", so binding fails unless a call names others";
      check.remedy = "name usable backends ('tessera backends' lists them), or unset it";
      return;
    }
  }
}

Check check_variable(const EnvironmentVariable& variable, const Examination& examination) {
  Check check{.area = "environment", .subject = variable.name, .found = variable.value};
  if (!variable.meaning.empty()) check.found += " (" + variable.meaning + ")";
  judge(variable, examination, check);
  return check;
}

// --- Caches --------------------------------------------------------------------------------------

std::string owner_and_mode(const ExaminedCacheFolder& folder) {
  if (!folder.owner || !folder.mode) return "";
  return "user " + std::to_string(*folder.owner) + ", mode " + octal_text(*folder.mode);
}

int64_t unusable_count(const ExaminedCacheFolder& folder) {
  int64_t count = 0;
  for (const CacheKindDescription& kind : folder.kept.kinds) {
    // Caches of other versions are no fault; first_damage tells of those that are damaged.
    if (kind.kind != "caches") count += kind.unusable;
  }
  return count;
}

// The first fault of a folder that can be used at all, or "".
std::pair<std::string, std::string> fault_inside(const ExaminedCacheFolder& folder) {
  if (folder.free_bytes && *folder.free_bytes < kMinFreeBytes) {
    return {"only " + bytes_text(*folder.free_bytes) +
                " are free there, so plans and packed "
                "weights may not be kept",
            "free space, or name another folder (TESSERA_CACHE_DIR, XDG_CACHE_HOME)"};
  }
  if (!folder.key_fault.empty()) {
    return {folder.key_fault + ", so packed weights, kernels and models are neither kept nor used",
            "chmod 600 the key, or remove it: then a new one is made, and the files that the old "
            "one authenticates are made again"};
  }
  if (!folder.first_damage.empty()) {
    return {"a cache cannot be read: " + folder.first_damage,
            "remove it: 'tessera cache verify' lists all damaged caches"};
  }
  if (const int64_t count = unusable_count(folder); count > 0) {
    return {count_text(count, "file") +
                " of packed weights, kernels or prices cannot be used: damaged, or made on another "
                "processor or by another user",
            "remove the stored files, which later binds make again: 'tessera cache clear'"};
  }
  return {};
}

void judge(const ExaminedCacheFolder& folder, Check& check) {
  const bool is_user = folder.tier == CacheTier::User;
  const auto report = [&](std::string problem, std::string remedy) {
    check.problem = std::move(problem);
    check.remedy = std::move(remedy);
  };
  if (folder.folder.empty()) {
    return report(
        "neither XDG_CACHE_HOME nor HOME names an absolute path, so no packed weights, "
        "kernels and models are kept",
        "set one of them");
  }
  if (!folder.unwritable.empty()) {
    // Plans that cannot be kept in the working folder are kept in the user's folder.
    if (!is_user && folder.named_by.empty()) return;
    return report(folder.unwritable + (is_user ? ", so each process packs weights again"
                                               : ", so plans are not kept there"),
                  is_user ? "make it writable for this user, or set XDG_CACHE_HOME"
                          : "name a folder that this user may write to in " + folder.named_by);
  }
  if (!folder.exists) {
    if (is_user || folder.named_by.empty()) return;
    return report("the folder that " + folder.named_by +
                      " names does not exist, so nothing is "
                      "known yet",
                  "if the path is right, nothing: the first bind that measures creates it; "
                  "otherwise correct " +
                      folder.named_by);
  }
  if (!folder.untrusted.empty()) {
    return report(folder.untrusted + ", so files in it are not used",
                  is_user ? "make this user its owner, with mode 0700"
                          : "chmod go-w " + folder.folder.string() +
                                ", or name another folder in TESSERA_CACHE_DIR");
  }
  const auto [problem, remedy] = fault_inside(folder);
  report(problem, remedy);
}

Check check_folder(const ExaminedCacheFolder& folder) {
  const bool is_user = folder.tier == CacheTier::User;
  Check check{.area = "caches", .subject = is_user ? "user's folder" : "first folder"};
  if (folder.folder.empty()) {
    check.found = "none";
    judge(folder, check);
    return check;
  }
  int64_t files = 0;
  int64_t bytes = 0;
  for (const CacheKindDescription& kind : folder.kept.kinds) {
    files += kind.files;
    bytes += kind.bytes;
  }
  std::vector<std::string> parts = {folder.folder.string()};
  parts.push_back("from " + (folder.named_by.empty() ? "the working folder" : folder.named_by));
  if (!folder.exists) {
    parts.emplace_back("does not exist");
  } else {
    parts.push_back(owner_and_mode(folder));
    parts.emplace_back(folder.unwritable.empty() ? "writable" : "not writable");
    parts.push_back(count_text(files, "file") + " of " + bytes_text(bytes));
    parts.push_back(count_text(folder.plans, "plan"));
    if (folder.other_caches > 0) {
      parts.push_back(count_text(folder.other_caches, "cache") +
                      " of other versions or processors");
    }
  }
  parts.push_back((folder.free_bytes ? bytes_text(*folder.free_bytes) : "an unknown size") +
                  " free");
  std::erase(parts, "");
  check.found = joined(parts);
  judge(folder, check);
  return check;
}

// --- Processor -----------------------------------------------------------------------------------

std::string number_text(double number) {
  std::string text = decimal_text(number, 2);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Check processor_check(std::string subject, std::string found) {
  return {.area = "processor",
          .subject = std::move(subject),
          .found = found.empty() ? kNotKnown : std::move(found)};
}

Check check_instruction_sets(const MachineState& machine) {
  Check check = processor_check("instruction sets", joined(machine.instruction_sets));
  if (machine.has_avx2.value_or(true)) return check;
  check.problem = "avx2 or fma is missing, so only the slowest kernels can run";
  check.remedy =
      "in a virtual machine, pass the host's processor on (QEMU: -cpu host); else use "
      "another machine";
  return check;
}

Check check_cores(const MachineState& machine) {
  const std::string total = machine.cores ? std::to_string(*machine.cores) : kNotKnown;
  if (!machine.usable_cores) return processor_check("usable cores", "");
  Check check = processor_check("usable cores",
                                std::to_string(*machine.usable_cores) +
                                    (machine.cores ? " of " + total : " of an unknown number"));
  if (!machine.cores || *machine.usable_cores >= *machine.cores) return check;
  check.problem = "this process may run on " + count_text(*machine.usable_cores, "core") + " of " +
                  total + " (affinity mask)";
  check.remedy =
      "start it without taskset or numactl, or give the container or job more cores "
      "(docker --cpuset-cpus, Slurm --cpus-per-task)";
  return check;
}

Check check_quota(const MachineState& machine) {
  if (!machine.quota.is_known) return processor_check("control group's quota", "");
  if (!machine.quota.value) return processor_check("control group's quota", "no limit");
  const double quota = *machine.quota.value;
  Check check = processor_check("control group's quota", number_text(quota) + " processors");
  if (!machine.usable_cores || quota >= static_cast<double>(*machine.usable_cores)) return check;
  const int threads = std::max(1, static_cast<int>(std::floor(quota)));
  check.problem = "the control group grants the time of " + number_text(quota) +
                  " processors, but " + count_text(*machine.usable_cores, "core") +
                  (*machine.usable_cores == 1 ? " is" : " are") +
                  " usable: a bind starts as many threads, which the system then stops in turn";
  check.remedy = "bind with --threads " + std::to_string(threads) +
                 " (threads=" + std::to_string(threads) +
                 "), or raise the limit (docker --cpus, Kubernetes "
                 "limits.cpu)";
  return check;
}

Check check_governor(const MachineState& machine) {
  Check check = processor_check("frequency governor", joined(machine.governors));
  if (!machine.governors.empty() && !machine.frequency_driver.empty()) {
    check.found += " (" + machine.frequency_driver + ")";
  }
  // With these drivers, powersave is the usual choice, which raises the frequency under load.
  const bool is_adaptive =
      machine.frequency_driver == "intel_pstate" || machine.frequency_driver == "amd-pstate-epp";
  if (std::ranges::count(machine.governors, "powersave") == 0 || is_adaptive) return check;
  check.problem = "the governor powersave keeps the processor at its lowest frequency";
  check.remedy = "as root: cpupower frequency-set -g performance (or schedutil)";
  return check;
}

Check check_load(const MachineState& machine) {
  if (!machine.busy_by_others) return processor_check("load by others", "");
  Check check = processor_check("load by others",
                                number_text(*machine.busy_by_others) + " processors on average");
  if (*machine.busy_by_others <= kMaxBusyByOthers) return check;
  check.problem = "other processes keep " + number_text(*machine.busy_by_others) +
                  " processors busy, of those on which this process may run";
  check.remedy = "stop them (top shows which they are), or leave them some cores with --threads";
  return check;
}

Check check_huge_pages(const MachineState& machine) {
  Check check = processor_check("huge pages", machine.huge_pages);
  if (machine.huge_pages != "never") return check;
  check.problem =
      "huge pages are switched off, so the first use of large memory is several times "
      "slower";
  check.remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  return check;
}

Check check_denormals(const MachineState& machine) {
  if (!machine.flushes_denormals) return processor_check("denormals", "");
  return processor_check("denormals", *machine.flushes_denormals
                                          ? "can be flushed, as runs do by default"
                                          : "cannot be flushed");
}

// --- Memory and limits ---------------------------------------------------------------------------

template <class T>
std::string limit_text(const Limit<T>& limit, std::string (*write)(T)) {
  if (!limit.is_known) return kNotKnown;
  return limit.value ? write(*limit.value) : "no limit";
}

std::string plain_number(int64_t number) { return std::to_string(number); }

Check check_memory(const MachineState& machine) {
  const auto text = [](const std::optional<int64_t>& bytes) {
    return bytes ? bytes_text(*bytes) : std::string(kNotKnown);
  };
  Check check{.area = "memory", .subject = "available", .found = text(machine.available_bytes)};
  if (machine.machine_bytes) check.found += " of " + text(machine.machine_bytes);
  if (!machine.available_bytes || *machine.available_bytes >= kMinAvailableBytes) return check;
  check.problem = "only " + bytes_text(*machine.available_bytes) +
                  " can be allocated; a run that needs more is refused";
  check.remedy =
      "stop other processes, raise the limit of the container (docker --memory), or "
      "bound the plan with --memory-budget";
  return check;
}

Check check_group_memory(const MachineState& machine) {
  return {.area = "memory",
          .subject = "control group's limit",
          .found = limit_text(machine.group_bytes, bytes_text)};
}

Check check_open_files(const MachineState& machine) {
  Check check{.area = "memory",
              .subject = "open files",
              .found = limit_text(machine.open_files, plain_number) + " (ulimit -n)"};
  if (!machine.open_files.value || *machine.open_files.value >= kMinOpenFiles) return check;
  check.problem = "this process may have " + count_text(*machine.open_files.value, "open file") +
                  ", expected " + std::to_string(kMinOpenFiles) +
                  ": kernels and packed weights that are files may not be loaded";
  check.remedy = "ulimit -n 1024 in the shell that starts it, or in limits.conf";
  return check;
}

Check check_address_space(const MachineState& machine) {
  Check check{.area = "memory",
              .subject = "address space",
              .found = limit_text(machine.address_space_bytes, bytes_text) + " (ulimit -v)"};
  const std::optional<int64_t>& limit = machine.address_space_bytes.value;
  if (!limit || (machine.machine_bytes && *limit >= *machine.machine_bytes)) return check;
  check.problem = "the address space ends at " + bytes_text(*limit) +
                  ", less than the machine's memory; mapped weights and libraries count, too";
  check.remedy = "ulimit -v unlimited in the shell that starts it";
  return check;
}

Check check_locked_memory(const MachineState& machine) {
  return {.area = "memory",
          .subject = "locked memory",
          .found = limit_text(machine.locked_bytes, bytes_text) + " (ulimit -l)"};
}

Check check_held_cache(const HeldCacheDescription& cache) {
  const std::string found =
      cache.max_count > 0 ? count_text(cache.count, "entry", "entries") + ", at most " +
                                std::to_string(cache.max_count)
                          : bytes_text(cache.bytes) + ", at most " + bytes_text(cache.max_bytes);
  return {.area = "memory", .subject = cache.name + " kept", .found = found};
}

}  // namespace

std::string octal_text(int64_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + (mode >> shift & 7));
  }
  return text;
}

std::vector<Check> find_faults(const Examination& examination) {
  std::vector<Check> checks;
  for (const BackendDescription& backend : examination.backends) {
    checks.push_back(check_backend(backend, examination));
  }
  const bool is_opened = examination.plugins_fault.empty();
  checks.push_back(is_opened ? check_choice(examination) : check_opening(examination));
  for (const ExaminedBackendPath& path : examination.backend_paths) {
    checks.push_back(check_backend_path(path, examination));
  }
  checks.push_back(check_worker(examination.worker));
  for (const EnvironmentVariable& variable : examination.environment) {
    checks.push_back(check_variable(variable, examination));
  }
  for (const ExaminedCacheFolder& folder : examination.cache_folders) {
    checks.push_back(check_folder(folder));
  }
  const MachineState& machine = examination.machine;
  checks.push_back(processor_check("model", machine.processor));
  for (const auto check :
       {check_instruction_sets, check_cores, check_quota, check_governor, check_load,
        check_huge_pages, check_denormals, check_memory, check_group_memory, check_open_files,
        check_address_space, check_locked_memory}) {
    checks.push_back(check(machine));
  }
  for (const HeldCacheDescription& cache : examination.held_caches) {
    checks.push_back(check_held_cache(cache));
  }
  return checks;
}

}  // namespace tessera::cli
