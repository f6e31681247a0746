#include "base/arena_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

namespace tessera {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

ArenaMemory::ArenaMemory(int64_t bytes) {
  const size_t used = round_up(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPageBytes);
  const bool is_large = used >= kHugePageBytes;
  // Huge pages begin at multiples of their size.
  const size_t mapped = is_large ? used + kHugePageBytes - kPageBytes : used;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = mapping;
  mapped_bytes_ = mapped;
  data_ = static_cast<char*>(mapping);
  if (is_large) {
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    data_ += round_up(address, kHugePageBytes) - address;
    // A wish: where it is not granted, pages are small.
    madvise(data_, used, MADV_HUGEPAGE);
  }
  for (size_t page = 0; page < used; page += kPageBytes) {
    static_cast<volatile char*>(data_)[page] = 0;
  }
}

ArenaMemory::~ArenaMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

}  // namespace tessera
