#include "base/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/guard_pages.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr const char* kPlace = "shared memory";

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

void write_at(int file, int64_t offset, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      throw Error(ErrorKind::OutOfMemory, kPlace,
                  std::to_string(bytes.size()) + " bytes: " + std::strerror(errno));
    }
    offset += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

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

// F_SEAL_WRITE fails if the kernel happens to hold a reference to a page (page migration, access
// tracking). Nobody has mapped the file for writing yet, so F_SEAL_FUTURE_WRITE is equivalent;
// kernels before 5.1 do not have it.
void seal(const FileHandle& file, bool against_writing) {
  const bool is_done = against_writing ? is_sealed(file, F_SEAL_FUTURE_WRITE) ||
                                             (errno == EINVAL && is_sealed(file, F_SEAL_WRITE))
                                       : is_sealed(file, 0);
  if (!is_done) {
    throw Error(ErrorKind::DeviceFailed, kPlace,
                std::string("could not be sealed: ") + std::strerror(errno));
  }
}

}  // namespace

SharedBytes share_bytes(std::span<const std::span<const char>> blocks) {
  SharedBytes shared = {.file = make_file()};
  int64_t end = 0;
  for (const std::span<const char>& block : blocks) {
    shared.offsets.push_back(end);
    end += GuardPages::pages_for(static_cast<int64_t>(block.size()));
  }
  if (::ftruncate(shared.file.get(), end) != 0) {
    throw Error(ErrorKind::OutOfMemory, kPlace,
                std::to_string(end) + " bytes: " + std::strerror(errno));
  }
  for (size_t index = 0; index < blocks.size(); ++index) {
    const auto bytes = static_cast<int64_t>(blocks[index].size());
    const int64_t before =
        GuardPages::pages_for(bytes) - round_up(bytes, GuardPages::kAlignmentBytes);
    write_at(shared.file.get(), shared.offsets[index] + before, blocks[index]);
  }
  seal(shared.file, /*against_writing=*/true);
  return shared;
}

SharedPage SharedPage::make() {
  FileHandle file = make_file();
  if (::ftruncate(file.get(), kBytes) != 0) {
    throw Error(ErrorKind::DeviceFailed, kPlace,
                std::string("has no room for a page: ") + std::strerror(errno));
  }
  seal(file, /*against_writing=*/false);
  return SharedPage(std::move(file));
}

SharedPage::SharedPage(FileHandle file) : file_(std::move(file)) {
  void* found = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (found == MAP_FAILED) {
    throw Error(ErrorKind::DeviceFailed, kPlace,
                std::string("could not be mapped: ") + std::strerror(errno));
  }
  data_ = found;
}

SharedPage::SharedPage(SharedPage&& other) noexcept
    : file_(std::move(other.file_)), data_(std::exchange(other.data_, nullptr)) {}

SharedPage::~SharedPage() {
  if (data_ != nullptr) ::munmap(data_, kBytes);
}

FileHandle SharedPage::share() const {
  return FileHandle(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace tessera
