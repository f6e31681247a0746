#include "base/arena_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/huge_pages.h"
#include "base/round_up.h"

namespace tessera {
namespace {

constexpr size_t kPageBytes = 4096;

size_t used_bytes(int64_t bytes) {
  return round_up(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPageBytes);
}

void touch_pages(char* start, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  // One system call for all pages, if the system supports it.
  if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (size_t page = 0; page < bytes; page += kPageBytes) {
    static_cast<volatile char*>(start)[page] = 0;
  }
}

}  // namespace

ArenaMemory::ArenaMemory(int64_t bytes, ThreadPool& pool) {
  map(bytes);
  touch(pool);
}

bool ArenaMemory::replace(int64_t bytes, ThreadPool& pool) {
  ArenaMemory other;
  other.map(bytes);
  if (other.is_null()) return false;
  *this = ArenaMemory(std::move(other));
  touch(pool);
  return true;
}

void ArenaMemory::map(int64_t bytes) {
  const size_t used = used_bytes(bytes);
  const bool is_large = used >= kHugePageBytes;
  // Leaves room to align data() to the size of a huge page.
  const size_t mapped = is_large ? used + kHugePageBytes - kPageBytes : used;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  mapped_bytes_ = mapped;
  bytes_ = bytes;
  data_ = static_cast<char*>(mapping);
  if (is_large) {
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    data_ += round_up(address, kHugePageBytes) - address;
    ask_for_huge_pages(data_, used);
  }
}

void ArenaMemory::touch(ThreadPool& pool) {
  if (is_null()) return;
  // One thread touches each huge page.
  const size_t used = used_bytes(bytes_);
  const auto parts = static_cast<int64_t>(round_up(used, kHugePageBytes) / kHugePageBytes);
  pool.parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    const size_t begin = static_cast<size_t>(first) * kHugePageBytes;
    const size_t end = std::min(used, static_cast<size_t>(last) * kHugePageBytes);
    touch_pages(data_ + begin, end - begin);
  });
}

ArenaMemory::~ArenaMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace tessera
