#include "import/onnx/wire/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/errors/check.h"
#include "base/files/file_handle.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

}  // namespace

ByteSource ByteSource::open(const std::filesystem::path& file) {
  // Without O_NONBLOCK, opening a pipe without a writer would block forever.
  return from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), file);
}

ByteSource ByteSource::open_without_links(const std::filesystem::path& file,
                                          const std::filesystem::path& shown) {
  return from(tessera::open_without_links(file).release(), shown);
}

ByteSource ByteSource::from(int descriptor, const std::filesystem::path& shown) {
  ByteSource source;
  source.location_ = "file '" + shown.string() + "'";
  source.descriptor_ = descriptor;
  if (source.descriptor_ < 0) {
    throw Error(ErrorKind::InvalidArgument, source.location_,
                "expected a readable file, found: " + system_text(errno));
  }
  struct stat status{};
  if (::fstat(source.descriptor_, &status) != 0) {
    throw Error(ErrorKind::InvalidArgument, source.location_, system_text(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::InvalidArgument, source.location_,
                std::string("expected a regular file, found ") +
                    (S_ISDIR(status.st_mode)
                         ? "a folder"
                         : "a device, pipe or socket; from a pipe a model is read as '-'"));
  }
  source.size_ = status.st_size;
  source.stamp_ = stamp_of(source.descriptor_);
  return source;
}

ByteSource ByteSource::over(std::string_view bytes, std::string location) {
  ByteSource source;
  source.location_ = std::move(location);
  source.memory_ = bytes;
  source.size_ = static_cast<int64_t>(bytes.size());
  return source;
}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(other.memory_),
      size_(other.size_),
      stamp_(other.stamp_),
      lease_(other.lease_),
      location_(std::move(other.location_)) {}

ByteSource::~ByteSource() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ByteSource::take_lease() {
  if (descriptor_ >= 0) lease_ = take_read_lease(descriptor_);
}

ReadLease ByteSource::release_lease() {
  return descriptor_ >= 0 ? release_read_lease(descriptor_, lease_) : lease_;
}

void ByteSource::read(int64_t offset, void* target, size_t count) const {
  TESSERA_CHECK(offset >= 0 && offset <= size_ && static_cast<int64_t>(count) <= size_ - offset,
                "readers stay inside the source");
  if (count == 0) return;
  if (descriptor_ < 0) {
    std::memcpy(target, memory_.data() + offset, count);
    return;
  }
  auto* next = static_cast<char*>(target);
  while (count > 0) {
    const ssize_t done = ::pread(descriptor_, next, count, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      throw Error(ErrorKind::InvalidArgument, location_,
                  done < 0 ? "could not be read: " + system_text(errno)
                           : "became shorter while it was read");
    }
    next += done;
    offset += done;
    count -= static_cast<size_t>(done);
  }
}

ByteSource::Mapping ByteSource::map() const {
  TESSERA_CHECK(descriptor_ >= 0 && size_ > 0, "only a file with contents can be mapped");
  const auto length = static_cast<size_t>(size_);
  void* address = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (address == MAP_FAILED) {
    throw Error(ErrorKind::InvalidArgument, location_,
                "could not be mapped: " + system_text(errno));
  }
  const auto kept = std::make_shared<const FileHandle>(::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0));
  std::shared_ptr<const std::byte> start(static_cast<const std::byte*>(address),
                                         [length, kept](const std::byte* mapped) {
                                           ::munmap(const_cast<std::byte*>(mapped), length);
                                         });
  return {std::move(start), kept->get()};
}

}  // namespace tessera::onnx_import
