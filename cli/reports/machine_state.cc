#include "cli/reports/doctor_findings.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/machine/processor.h"
#include "base/machine/processor_load.h"
#include "base/memory/control_groups.h"
#include "base/memory/memory.h"
#include "base/threads/denormals.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kWatchTime = std::chrono::milliseconds(200);

// As /proc/cpuinfo of x86-64 and of arm64 writes them.
constexpr std::array<std::string_view, 27> kUsedInstructionSets = {
    "sse4_1",      "sse4_2",   "avx",      "f16c",     "fma",      "avx2",        "bmi2",
    "avx_vnni",    "avx512f",  "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "asimd",       "asimdhp",
    "asimddp",     "sve",      "sve2",     "bf16",     "i8mm",     "sme"};

// The first line; "" if there is none.
std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<int64_t> read_number(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// The ids of a list such as "0-3,8"; empty if it is none.
std::vector<int> read_id_list(const fs::path& file) {
  constexpr int kMaxId = 1 << 16;
  std::vector<int> ids;
  std::istringstream list(first_line(file));
  for (std::string range; std::getline(list, range, ',');) {
    std::istringstream numbers(range);
    int first = 0;
    if (!(numbers >> first)) return {};
    int last = first;
    if (char dash = 0; numbers >> dash && !(numbers >> last)) return {};
    if (first < 0 || last < first || last > kMaxId) return {};
    for (int id = first; id <= last; ++id) ids.push_back(id);
  }
  return ids;
}

void read_instruction_sets(const fs::path& root, MachineState& state) {
  std::ifstream file(root / "proc" / "cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const bool is_x86 = line.starts_with("flags");
    if (!is_x86 && !line.starts_with("Features")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream flags(line.substr(colon + 1));
    std::vector<std::string> all;
    for (std::string flag; flags >> flag;) all.push_back(flag);
    const auto has = [&](std::string_view name) { return std::ranges::count(all, name) > 0; };
    for (const std::string_view name : kUsedInstructionSets) {
      if (has(name)) state.instruction_sets.emplace_back(name);
    }
    if (is_x86) state.has_avx2 = has("avx2") && has("fma");
    return;
  }
}

void read_frequency(const fs::path& processors, const std::vector<int>& ids, MachineState& state) {
  for (const int id : ids) {
    const fs::path folder = processors / ("cpu" + std::to_string(id)) / "cpufreq";
    const std::string governor = first_line(folder / "scaling_governor");
    if (governor.empty() || std::ranges::count(state.governors, governor) > 0) continue;
    state.governors.push_back(governor);
    state.frequency_driver = first_line(folder / "scaling_driver");
  }
}

// "always [madvise] never" means madvise.
std::string chosen_word(const std::string& choices) {
  const size_t begin = choices.find('[');
  const size_t end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return choices.substr(begin + 1, end - begin - 1);
}

std::optional<double> quota_of(const fs::path& group) {
  std::ifstream file(group / "cpu.max");  // "<microseconds or max> <period>"
  double used = 0;
  double period = 0;
  if (file >> used >> period && used > 0 && period > 0) return used / period;
  const std::optional<int64_t> quota = read_number(group / "cpu.cfs_quota_us");
  const std::optional<int64_t> length = read_number(group / "cpu.cfs_period_us");
  if (!quota || !length || *quota <= 0 || *length <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*length);
}

template <class T>
void take_smaller(std::optional<T>& least, const std::optional<T>& value) {
  if (value && (!least || *value < *least)) least = value;
}

void read_groups(const fs::path& root, MachineState& state) {
  for (const fs::path& folder : ControlGroups(root).folders()) {
    state.quota.is_known = state.group_bytes.is_known = true;
    take_smaller(state.quota.value, quota_of(folder));
    take_smaller(state.group_bytes.value, group_memory_limit_bytes(folder));
  }
}

std::optional<int64_t> count_usable_cores() {
  // Enough for 16384 processors: the call fails if the mask is smaller than the system's.
  std::array<cpu_set_t, 16> allowed = {};
  if (::sched_getaffinity(0, sizeof(allowed), allowed.data()) != 0) return std::nullopt;
  return CPU_COUNT_S(sizeof(allowed), allowed.data());
}

Limit<int64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return {};
  constexpr auto kMax = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > kMax) return {.is_known = true};
  return {.is_known = true, .value = static_cast<int64_t>(limit.rlim_cur)};
}

std::optional<int64_t> known_bytes(int64_t bytes) {
  if (bytes == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return bytes;
}

bool can_flush_denormals() {
  const ScopedDenormals flush(Denormals::Flush);
  // Half of the smallest normal number; volatile, so that the processor computes it.
  volatile float smallest = std::numeric_limits<float>::min();
  const volatile float half = smallest * 0.5F;
  return half == 0;
}

std::optional<double> watch_others() {
  const ProcessorLoad from = read_processor_load();
  std::this_thread::sleep_for(kWatchTime);
  const ProcessorLoad to = read_processor_load();
  if (from.processors == 0 || to.processors == 0) return std::nullopt;
  // The system's steps are coarse, so the difference may exceed the number of processors.
  return std::min<double>(processors_of_others(from, to), to.processors);
}

}  // namespace

void read_machine_files(const fs::path& root, MachineState& state) {
  read_instruction_sets(root, state);
  const fs::path processors = root / "sys" / "devices" / "system" / "cpu";
  const std::vector<int> online = read_id_list(processors / "online");
  if (!online.empty()) state.cores = static_cast<int64_t>(online.size());
  read_frequency(processors, online, state);
  state.huge_pages =
      chosen_word(first_line(root / "sys" / "kernel" / "mm" / "transparent_hugepage" / "enabled"));
  read_groups(root, state);
}

MachineState read_machine_state() {
  MachineState state;
  state.busy_by_others = watch_others();
  state.processor = processor_model();
  read_machine_files("/", state);
  state.usable_cores = count_usable_cores();
  state.flushes_denormals = can_flush_denormals();
  state.machine_bytes = known_bytes(machine_memory_bytes());
  state.available_bytes = known_bytes(available_memory_bytes());
  state.open_files = soft_limit(RLIMIT_NOFILE);
  state.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
  state.address_space_bytes = soft_limit(RLIMIT_AS);
  return state;
}

}  // namespace tessera::cli
