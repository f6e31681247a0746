#include "backend/contract/status.h"

#include <cstring>

namespace tessera {
namespace {

// The contract numbers the enumerators of ErrorKind from 1, in order.
int32_t code_of(ErrorKind kind) { return static_cast<int32_t>(kind) + 1; }

static_assert(static_cast<int>(ErrorKind::InvalidModel) + 1 == TESSERA_INVALID_MODEL);
static_assert(static_cast<int>(ErrorKind::Unsupported) + 1 == TESSERA_UNSUPPORTED);
static_assert(static_cast<int>(ErrorKind::Internal) + 1 == TESSERA_INTERNAL);

}  // namespace

ErrorKind Status::kind() const {
  // An internal error of a plug-in is not ours: for the user its device has failed.
  if (code <= TESSERA_OK || code >= TESSERA_INTERNAL) return ErrorKind::DeviceFailed;
  return static_cast<ErrorKind>(code - 1);
}

int32_t report(tessera_error* error, int32_t code, const std::string& message) noexcept {
  if (error != nullptr) {
    error->kind = code;
    std::strncpy(error->message, message.c_str(), sizeof(error->message) - 1);
    error->message[sizeof(error->message) - 1] = '\0';
  }
  return code;
}

int32_t report(tessera_error* error, const Error& thrown) noexcept {
  return report(error, code_of(thrown.kind()), thrown.where() + ": " + thrown.message());
}

}  // namespace tessera
