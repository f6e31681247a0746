#include "base/memory/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/memory/control_groups.h"

// Every glibc header defines __GLIBC__.
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tessera {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

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

// Read once, because mounts of control groups do not change while programs run.
const ControlGroups& control_groups() {
  static const ControlGroups own("/");
  return own;
}

// The memory that a limit of the process (ulimit) leaves; `pages_used` is the position of the pages
// that count against it in /proc/self/statm.
int64_t limit_available_bytes(__rlimit_resource resource, int pages_used) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  for (int position = 0; position <= pages_used; ++position) {
    if (!(file >> pages)) pages = 0;
  }
  const int64_t used = pages * ::sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used);
}

// A line of /proc/<process>/status; 0 if there is none.
int64_t status_bytes(const std::string& process, const std::string& key) {
  std::ifstream file("/proc/" + process + "/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  }
  return 0;
}

}  // namespace

int64_t available_memory_bytes() {
  constexpr int kAllPages = 0;
  constexpr int kDataPages = 5;
  return std::min({machine_available_bytes(), control_groups().available_bytes().value_or(kUnknown),
                   limit_available_bytes(RLIMIT_AS, kAllPages),
                   limit_available_bytes(RLIMIT_DATA, kDataPages)});
}

int64_t machine_memory_bytes() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const int64_t machine = pages > 0 && page_bytes > 0 ? pages * page_bytes : kUnknown;
  return std::min(machine, control_groups().memory_limit_bytes().value_or(kUnknown));
}

int64_t peak_resident_bytes(int process_id) {
  return status_bytes(process_id == 0 ? "self" : std::to_string(process_id), "VmHWM:");
}

AllocatedMemory allocated_memory() {
  AllocatedMemory memory;
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const auto heap = ::mallinfo2();
  memory.in_use_bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
  memory.heap_bytes = static_cast<int64_t>(heap.arena + heap.hblkhd);
#endif
  memory.resident_bytes = status_bytes("self", "RssAnon:");
  return memory;
}

int64_t grown_bytes(const AllocatedMemory& before, const AllocatedMemory& after) {
  const int64_t in_use = after.in_use_bytes - before.in_use_bytes;
  const int64_t heap = std::max<int64_t>(0, after.heap_bytes - before.heap_bytes);
  const int64_t beside = after.resident_bytes - before.resident_bytes - heap;
  return std::max<int64_t>(0, in_use + std::max<int64_t>(0, beside));
}

void return_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace tessera
