#include "cli/inputs/model_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace tessera::cli {
namespace {

constexpr const char* kPlace = "standard input";
// protobuf's limit; src/import/onnx/wire/wire_scan.cc applies the same limit to files.
constexpr size_t kMaxModelBytes = std::numeric_limits<int32_t>::max();
constexpr size_t kReadAtOnce = size_t{1} << 20;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, kPlace, message);
}

// The file's size; 0 if the size is unknown until the stream is read, as for pipes.
size_t size_of(int descriptor) {
  struct stat status{};
  const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<size_t>(status.st_size) : 0;
}

}  // namespace

std::string read_model_bytes(int descriptor, size_t max_bytes) {
  if (::isatty(descriptor) == 1) {
    refuse("expected a model, found a terminal; name a file, or give one with '< model.onnx'");
  }
  std::string bytes;
  bytes.reserve(std::min(size_of(descriptor), max_bytes) + 1);
  size_t filled = 0;
  while (true) {
    // One byte more than allowed, to detect that the input is too large.
    const size_t room = std::min(kReadAtOnce, max_bytes + 1 - filled);
    bytes.resize(filled + room);
    const ssize_t count = ::read(descriptor, bytes.data() + filled, room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("could not be read: " + std::generic_category().message(errno));
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled > max_bytes) {
      refuse("expected at most " + std::to_string(max_bytes) +
             " bytes, protobuf's limit, found more; larger weights belong into external data "
             "files");
    }
  }
  bytes.resize(filled);
  if (bytes.empty()) refuse("expected a model, found nothing; give one with '< model.onnx'");
  return bytes;
}

Model load_model(const std::string& model, const LoadOptions& options) {
  if (model != "-") return load(model, options);
  return load({.bytes = read_model_bytes(STDIN_FILENO, kMaxModelBytes), .name = kPlace}, options);
}

}  // namespace tessera::cli
