#include "verify/repeated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file_handle.h"
#include "tessera/error.h"
#include "verify/guarded_memory.h"

namespace tessera::verification {
namespace {

// Mapped before the data, whose pieces must begin at a page: a multiple of any page's size.
constexpr int64_t kStart = int64_t{64} << 10;

[[noreturn]] void fail(int64_t bytes) {
  throw Error(ErrorKind::OutOfMemory, "memory of a check",
              "needs " + std::to_string(bytes) + " bytes of addresses: " + std::strerror(errno));
}

}  // namespace

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
