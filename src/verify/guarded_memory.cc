#include "verify/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors/check.h"
#include "base/files/file_handle.h"
#include "tessera/error.h"

namespace tessera::verification {
namespace {

// Depends on the position, so that a copied neighbouring byte is detected too.
char guard_byte(int64_t offset) { return static_cast<char>(0xA0 + (offset * 7 & 0x3F)); }

// Mapped before the data, whose pieces must begin at a page: a multiple of any page's size.
constexpr int64_t kStart = int64_t{64} << 10;

[[noreturn]] void fail(int64_t bytes) {
  throw Error(ErrorKind::OutOfMemory, "memory of a check",
              "needs " + std::to_string(bytes) + " bytes of addresses: " + std::strerror(errno));
}

}  // namespace

void fill_guard(std::span<char> before, std::span<char> after) {
  for (size_t index = 0; index < before.size(); ++index) {
    before[before.size() - 1 - index] = guard_byte(-static_cast<int64_t>(index) - 1);
  }
  for (size_t index = 0; index < after.size(); ++index) {
    after[index] = guard_byte(static_cast<int64_t>(index) + 1);
  }
}

std::string explain_guard(std::span<const char> before, std::span<const char> after,
                          int64_t bytes) {
  for (int64_t offset = std::ssize(before); offset >= 1; --offset) {
    if (before[before.size() - static_cast<size_t>(offset)] != guard_byte(-offset)) {
      return "writes " + std::to_string(offset) + " bytes before its start";
    }
  }
  for (int64_t offset = std::ssize(after); offset >= 1; --offset) {
    if (after[static_cast<size_t>(offset) - 1] != guard_byte(offset)) {
      return "writes up to byte " + std::to_string(bytes + offset) + " of " + std::to_string(bytes);
    }
  }
  return "";
}

GuardedMemory::GuardedMemory(int64_t bytes, int64_t alignment_bytes, uint8_t fill,
                             GuardPagePool* pages)
    : bytes_(bytes), pool_(pages) {
  place(alignment_bytes);
  std::memset(data_, fill, static_cast<size_t>(bytes));
}

GuardedMemory::GuardedMemory(std::span<const char> contents, int64_t alignment_bytes,
                             GuardPagePool* pages)
    : bytes_(std::ssize(contents)), pool_(pages) {
  place(alignment_bytes);
  if (!contents.empty()) std::memcpy(data_, contents.data(), contents.size());
}

GuardedMemory::GuardedMemory(std::span<const char> contents, std::shared_ptr<const void> owner)
    : bytes_(std::ssize(contents)),
      owner_(std::move(owner)),
      data_(const_cast<char*>(contents.data())),
      guard_bytes_before_(0),
      guard_bytes_after_(0) {}

GuardedMemory::~GuardedMemory() {
  if (pages_) pool_->give_back(std::move(*pages_));
}

void GuardedMemory::place(int64_t alignment_bytes) {
  if (pool_ == nullptr) {
    lay_out_in_bytes(alignment_bytes);
  } else {
    lay_out_in_pages(alignment_bytes);
  }
  fill_guard({data_ - guard_bytes_before_, static_cast<size_t>(guard_bytes_before_)},
             {data_ + bytes_, static_cast<size_t>(guard_bytes_after_)});
}

void GuardedMemory::lay_out_in_bytes(int64_t alignment_bytes) {
  memory_ = std::make_unique_for_overwrite<char[]>(
      static_cast<size_t>(bytes_ + 2 * kGuardBytes + 4 * alignment_bytes));
  const auto first = reinterpret_cast<uintptr_t>(memory_.get()) + kGuardBytes;
  const auto step = static_cast<uintptr_t>(2 * alignment_bytes);
  const uintptr_t start = (first + step - 1) / step * step + step / 2;
  data_ = memory_.get() + (start - reinterpret_cast<uintptr_t>(memory_.get()));
}

void GuardedMemory::lay_out_in_pages(int64_t alignment_bytes) {
  const int64_t whole = (bytes_ + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  pages_.emplace(pool_->take(whole));
  data_ = reinterpret_cast<char*>(pages_->data());
  guard_bytes_before_ = std::min(kGuardBytes, pages_->slack_before());
  guard_bytes_after_ = whole - bytes_ + pages_->slack_after();
}

std::string GuardedMemory::explain_damage() const {
  return explain_guard({data_ - guard_bytes_before_, static_cast<size_t>(guard_bytes_before_)},
                       {data_ + bytes_, static_cast<size_t>(guard_bytes_after_)}, bytes_);
}

RepeatedMemory::RepeatedMemory(int64_t bytes, std::span<const char> pattern)
    : bytes_(bytes), mapped_bytes_(kStart + bytes + kGuardBytes) {
  TESSERA_CHECK(std::ssize(pattern) == kPieceBytes, "the pattern fills one piece");
  void* const found = ::mmap(nullptr, static_cast<size_t>(mapped_bytes_), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) fail(bytes);
  mapped_ = static_cast<char*>(found);
  data_ = mapped_ + kStart;
  const int64_t pieces = bytes / kPieceBytes;
  const FileHandle file(pieces == 0 ? -1 : ::memfd_create("tessera-check", MFD_CLOEXEC));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const bool is_mapped =
        file.is_open() && (piece > 0 || ::ftruncate(file.get(), kPieceBytes) == 0) &&
        ::mmap(data_ + piece * kPieceBytes, static_cast<size_t>(kPieceBytes),
               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED;
    if (!is_mapped) {
      ::munmap(mapped_, static_cast<size_t>(mapped_bytes_));
      fail(bytes);
    }
  }
  if (pieces > 0) std::ranges::copy(pattern, data_);
  std::copy_n(pattern.data(), bytes % kPieceBytes, data_ + pieces * kPieceBytes);
  fill_guard({data_ - kGuardBytes, static_cast<size_t>(kGuardBytes)},
             {data_ + bytes_, static_cast<size_t>(kGuardBytes)});
}

RepeatedMemory::~RepeatedMemory() { ::munmap(mapped_, static_cast<size_t>(mapped_bytes_)); }

std::string RepeatedMemory::explain_damage() const {
  return explain_guard({data_ - kGuardBytes, static_cast<size_t>(kGuardBytes)},
                       {data_ + bytes_, static_cast<size_t>(kGuardBytes)}, bytes_);
}

}  // namespace tessera::verification
