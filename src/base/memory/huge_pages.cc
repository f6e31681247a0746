#include "base/memory/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace tessera {

void ask_for_huge_pages(void* memory, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const uintptr_t end = (address + bytes) / kHugePageBytes * kHugePageBytes;
  if (first < end)
    ::madvise(static_cast<char*>(memory) + (first - address), end - first, MADV_HUGEPAGE);
}

}  // namespace tessera
