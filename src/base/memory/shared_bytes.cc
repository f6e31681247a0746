#include "base/memory/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/memory/guard_pages.h"
#include "base/memory/memory.h"
#include "base/memory/round_up.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr const char* kPlace = "shared memory";

// An arena of more than kLargeBytes gives its memory back when the next contents are kMaxExcess
// times smaller.
constexpr int64_t kLargeBytes = int64_t{64} << 20;
constexpr int64_t kMaxExcess = 8;

FileHandle make_file() {
  FileHandle file(::memfd_create("tessera", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) {
    throw Error(ErrorKind::DeviceFailed, kPlace,
                std::string("could not be made: ") + std::strerror(errno));
  }
  return file;
}

bool is_sealed(const FileHandle& file, int seals) {
  return ::fcntl(file.get(), F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

// Forbids to change the size and, with F_SEAL_FUTURE_WRITE, to write except by mappings that exist.
// Kernels before 5.1 do not know the latter.
void seal(const FileHandle& file, int seals) {
  if (is_sealed(file, seals) || (errno == EINVAL && is_sealed(file, 0))) return;
  throw Error(ErrorKind::DeviceFailed, kPlace,
              std::string("could not be sealed: ") + std::strerror(errno));
}

// A mapping of the whole file for reading and writing.
void* map(const FileHandle& file, int64_t bytes) {
  void* found = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (found != MAP_FAILED) return found;
  throw Error(ErrorKind::OutOfMemory, kPlace,
              std::to_string(bytes) + " bytes could not be mapped: " + std::strerror(errno));
}

}  // namespace

SharedArena::~SharedArena() { release(); }

void SharedArena::release() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
  data_ = nullptr;
  bytes_ = 0;
  file_ = FileHandle();
}

void SharedArena::make_room(int64_t bytes) {
  const bool is_much_too_large = bytes_ > kLargeBytes && bytes_ / kMaxExcess > bytes;
  if (bytes <= bytes_ && !is_much_too_large) return;
  release();
  // Linux would end a process rather than refuse.
  if (bytes > available_memory_bytes()) {
    throw Error(ErrorKind::OutOfMemory, kPlace,
                "needs " + std::to_string(bytes) + " bytes, more than are available");
  }
  file_ = make_file();
  // Gets the pages, too: a page that is missing later would be a signal, not an error.
  if (::ftruncate(file_.get(), bytes) != 0 || ::fallocate(file_.get(), 0, 0, bytes) != 0) {
    throw Error(ErrorKind::OutOfMemory, kPlace,
                std::to_string(bytes) + " bytes: " + std::strerror(errno));
  }
  data_ = static_cast<char*>(map(file_, bytes));
  bytes_ = bytes;
  seal(file_, F_SEAL_FUTURE_WRITE);
}

SharedBytes SharedArena::store(std::span<const std::span<const char>> blocks) {
  SharedBytes shared;
  int64_t end = 0;
  for (const std::span<const char>& block : blocks) {
    shared.offsets.push_back(end);
    end += GuardPages::pages_for(static_cast<int64_t>(block.size()));
  }
  make_room(end);
  for (size_t index = 0; index < blocks.size(); ++index) {
    if (blocks[index].empty()) continue;
    const auto bytes = static_cast<int64_t>(blocks[index].size());
    const int64_t before =
        GuardPages::pages_for(bytes) - round_up(bytes, GuardPages::kAlignmentBytes);
    std::memcpy(data_ + shared.offsets[index] + before, blocks[index].data(), blocks[index].size());
  }
  shared.file = FileHandle(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  return shared;
}

SharedPage SharedPage::make() {
  FileHandle file = make_file();
  if (::ftruncate(file.get(), kBytes) != 0) {
    throw Error(ErrorKind::DeviceFailed, kPlace,
                std::string("has no room for a page: ") + std::strerror(errno));
  }
  seal(file, 0);
  return SharedPage(std::move(file));
}

SharedPage::SharedPage(FileHandle file) : file_(std::move(file)) { data_ = map(file_, kBytes); }

SharedPage::SharedPage(SharedPage&& other) noexcept
    : file_(std::move(other.file_)), data_(std::exchange(other.data_, nullptr)) {}

SharedPage::~SharedPage() {
  if (data_ != nullptr) ::munmap(data_, kBytes);
}

FileHandle SharedPage::share() const {
  return FileHandle(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace tessera
