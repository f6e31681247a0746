#include "base/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

// Every glibc header defines __GLIBC__.
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tessera {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t read_number(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  // "max" (no limit) fails to parse, which gives kUnknown as wanted.
  return file >> value ? value : kUnknown;
}

int64_t machine_available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return kUnknown;
}

int64_t control_group_available_bytes() {
  const int64_t limit = read_number("/sys/fs/cgroup/memory.max");
  const int64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return std::max<int64_t>(0, limit - used);
}

int64_t address_space_available_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const int64_t pages = read_number("/proc/self/statm");
  const int64_t used = pages == kUnknown ? 0 : pages * 4096;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used);
}

}  // namespace

int64_t available_memory_bytes() {
  return std::min({machine_available_bytes(), control_group_available_bytes(),
                   address_space_available_bytes()});
}

int64_t machine_memory_bytes() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const int64_t machine = pages > 0 && page_bytes > 0 ? pages * page_bytes : kUnknown;
  return std::min(machine, read_number("/sys/fs/cgroup/memory.max"));
}

int64_t peak_resident_bytes(int process_id) {
  const std::string process = process_id == 0 ? "self" : std::to_string(process_id);
  std::ifstream file("/proc/" + process + "/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace tessera
