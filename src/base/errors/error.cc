#include "tessera/error.h"

#include <utility>

namespace tessera {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidModel:
      return "InvalidModel";
    case ErrorKind::InvalidArgument:
      return "InvalidArgument";
    case ErrorKind::Unsupported:
      return "Unsupported";
    case ErrorKind::OutOfMemory:
      return "OutOfMemory";
    case ErrorKind::DeviceFailed:
      return "DeviceFailed";
    case ErrorKind::Corrupt:
      return "Corrupt";
    case ErrorKind::Internal:
      return "Internal";
    case ErrorKind::Cancelled:
      return "Cancelled";
    case ErrorKind::CacheMiss:
      return "CacheMiss";
  }
  return "Internal";
}

namespace {

std::string join(ErrorKind kind, const std::string& where, const std::string& message) {
  std::string text(name(kind));
  if (!where.empty()) text += ": " + where;
  return text + ": " + message;
}

}  // namespace

Error::Error(ErrorKind kind, std::string where, std::string message)
    : std::runtime_error(join(kind, where, message)),
      kind_(kind),
      where_(std::move(where)),
      message_(std::move(message)) {}

}  // namespace tessera
