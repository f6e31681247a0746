#include "base/guard_pages.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/huge_pages.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// More than any file has, and small enough that rounding up to pages does not overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 62;

int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

[[noreturn]] void fail(int64_t bytes) {
  throw Error(ErrorKind::OutOfMemory, "fenced memory",
              "needs " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
}

}  // namespace

int64_t GuardPages::pages_for(int64_t bytes) {
  // An empty buffer has an address too.
  return bytes == 0 ? page_bytes() : round_up(bytes, page_bytes());
}

void GuardPages::reserve() {
  pages_bytes_ = pages_for(bytes_);
  void* found = ::mmap(nullptr, static_cast<size_t>(pages_bytes_ + 2 * page_bytes()), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) fail(bytes_);
  reserved_ = static_cast<std::byte*>(found);
  pages_ = reserved_ + page_bytes();
  data_ = pages_ + pages_bytes_ - round_up(bytes_, kAlignmentBytes);
}

GuardPages::GuardPages(int64_t bytes) : bytes_(bytes) {
  reserve();
  if (::mprotect(pages_, static_cast<size_t>(pages_bytes_), PROT_READ | PROT_WRITE) != 0) {
    ::munmap(reserved_, static_cast<size_t>(pages_bytes_ + 2 * page_bytes()));
    fail(bytes_);
  }
  ask_for_huge_pages(pages_, static_cast<size_t>(pages_bytes_));
#ifdef MADV_POPULATE_WRITE
  // Every page will be written, and one call costs less than a fault for each. Older kernels
  // refuse, which does no harm.
  ::madvise(pages_, static_cast<size_t>(pages_bytes_), MADV_POPULATE_WRITE);
#endif
}

GuardPages::GuardPages(int64_t bytes, int file, int64_t offset) : bytes_(bytes) {
  struct stat found = {};
  // Reading beyond a file's end would raise SIGBUS. Another process supplied the numbers, so they
  // are checked.
  if (bytes < 0 || bytes > kMaxBytes || ::fstat(file, &found) != 0 || offset < 0 ||
      found.st_size < pages_for(bytes) || offset > found.st_size - pages_for(bytes)) {
    throw Error(ErrorKind::DeviceFailed, "shared memory",
                "expected " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                    ", found a file of " + std::to_string(found.st_size));
  }
  reserve();
  if (::mmap(pages_, static_cast<size_t>(pages_bytes_), PROT_READ, MAP_PRIVATE | MAP_FIXED, file,
             offset) == MAP_FAILED) {
    const std::string reason = std::strerror(errno);
    ::munmap(reserved_, static_cast<size_t>(pages_bytes_ + 2 * page_bytes()));
    throw Error(ErrorKind::DeviceFailed, "shared memory", "could not be mapped: " + reason);
  }
}

GuardPages::GuardPages(GuardPages&& other) noexcept
    : reserved_(std::exchange(other.reserved_, nullptr)),
      pages_(other.pages_),
      pages_bytes_(other.pages_bytes_),
      data_(other.data_),
      bytes_(other.bytes_) {}

GuardPages& GuardPages::operator=(GuardPages&& other) noexcept {
  std::swap(reserved_, other.reserved_);
  std::swap(pages_, other.pages_);
  std::swap(pages_bytes_, other.pages_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardPages::~GuardPages() {
  if (reserved_ != nullptr) {
    ::munmap(reserved_, static_cast<size_t>(pages_bytes_ + 2 * page_bytes()));
  }
}

void GuardPages::forbid_writing() {
  if (::mprotect(pages_, static_cast<size_t>(pages_bytes_), PROT_READ) != 0) fail(bytes_);
}

}  // namespace tessera
