#include "base/memory/guard_pages.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/huge_pages.h"
#include "base/memory/round_up.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// More than any file has, and small enough that rounding up to pages does not overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 62;
// The maximum number of bytes that a pool keeps.
constexpr int64_t kMaxUnusedBytes = int64_t{256} << 20;

int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

[[noreturn]] void fail(int64_t bytes) {
  throw Error(ErrorKind::OutOfMemory, "guarded memory",
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
  place(bytes_);
}

void GuardPages::place(int64_t bytes) {
  bytes_ = bytes;
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
      bytes_(other.bytes_),
      is_read_only_(other.is_read_only_) {}

GuardPages& GuardPages::operator=(GuardPages&& other) noexcept {
  std::swap(reserved_, other.reserved_);
  std::swap(pages_, other.pages_);
  std::swap(pages_bytes_, other.pages_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_read_only_, other.is_read_only_);
  return *this;
}

GuardPages::~GuardPages() {
  if (reserved_ != nullptr) {
    ::munmap(reserved_, static_cast<size_t>(pages_bytes_ + 2 * page_bytes()));
  }
}

void GuardPages::forbid_writing() {
  if (::mprotect(pages_, static_cast<size_t>(pages_bytes_), PROT_READ) != 0) fail(bytes_);
  is_read_only_ = true;
}

void GuardPages::reuse_for(int64_t bytes) {
  TESSERA_CHECK(pages_for(bytes) == pages_bytes_, "pages are used again for as many");
  if (is_read_only_) {
    const int rights = PROT_READ | PROT_WRITE;
    if (::mprotect(pages_, static_cast<size_t>(pages_bytes_), rights) != 0) fail(bytes);
    is_read_only_ = false;
  }
  place(bytes);
}

GuardPages GuardPagePool::take(int64_t bytes) {
  const int64_t wanted = GuardPages::pages_for(bytes);
  // The newest are likely to be in the caches.
  const auto found = std::find_if(unused_.rbegin(), unused_.rend(), [&](const GuardPages& pages) {
    return pages.pages_bytes() == wanted;
  });
  if (found == unused_.rend()) return GuardPages(bytes);
  GuardPages pages = std::move(*found);
  unused_.erase(std::next(found).base());
  unused_bytes_ -= wanted;
  pages.reuse_for(bytes);
  return pages;
}

void GuardPagePool::give_back(GuardPages pages) {
  unused_bytes_ += pages.pages_bytes();
  unused_.push_back(std::move(pages));
  while (unused_bytes_ > kMaxUnusedBytes) {
    unused_bytes_ -= unused_.front().pages_bytes();
    unused_.pop_front();
  }
}

}  // namespace tessera
