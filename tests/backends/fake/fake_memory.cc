#include "fake_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "tessera/backend.h"

namespace tessera::fake {

Pages::Pages(int64_t bytes, bool can_access) : bytes_(static_cast<size_t>(bytes)) {
  const int protection = can_access ? PROT_READ | PROT_WRITE : PROT_NONE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (can_access ? 0 : MAP_NORESERVE);
  void* made = ::mmap(nullptr, bytes_, protection, flags, -1, 0);
  if (made == MAP_FAILED) {
    throw plugin::Failure(TESSERA_OUT_OF_MEMORY,
                          "no " + std::to_string(bytes) + " bytes of memory left");
  }
  begin_ = static_cast<std::byte*>(made);
}

Pages::~Pages() { ::munmap(begin_, bytes_); }

Allocation::Allocation(int64_t size, const FakeDevice* owner, const std::string& text)
    : bytes(size),
      device(owner),
      name(text),
      reserved(size, false),
      contents(std::make_shared<Pages>(size, true)) {
  std::memset(contents->begin(), kNewByte, static_cast<size_t>(size));
}

}  // namespace tessera::fake
