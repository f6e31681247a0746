// How failures cross the border to a plug-in and back.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {

// What a call to a plug-in ended with.
struct Status {
  int32_t code = TESSERA_OK;
  std::string message;
  bool is_fine() const { return code == TESSERA_OK; }
  ErrorKind kind() const;
};

// Writes `message` into memory of the other side, cut where it is too long. Gives `code`.
int32_t report(tessera_error* error, int32_t code, const std::string& message) noexcept;
int32_t report(tessera_error* error, const Error& thrown) noexcept;

// Calls `body(tessera_error*) -> int32_t` on the other side. An exception that escapes it, against
// the contract, is a failure like any other.
template <class Body>
Status call_plugin(const Body& body) {
  tessera_error error = {};
  error.struct_size = sizeof(error);
  try {
    const int32_t code = body(&error);
    error.message[sizeof(error.message) - 1] = '\0';
    if (code == TESSERA_OK) return {};
    return {code, error.message[0] == '\0' ? "failed without a reason" : error.message};
  } catch (const std::exception& exception) {
    return {TESSERA_INTERNAL, std::string("an exception left it: ") + exception.what()};
  } catch (...) {
    return {TESSERA_INTERNAL, "something that is no std::exception was thrown out of it"};
  }
}

// Runs `body` for the other side: what it throws becomes a status.
template <class Body>
int32_t serve_plugin(tessera_error* error, const Body& body) noexcept {
  try {
    body();
    return TESSERA_OK;
  } catch (const Error& thrown) {
    return report(error, thrown);
  } catch (const std::bad_alloc&) {
    return report(error, TESSERA_OUT_OF_MEMORY, "no memory left");
  } catch (const std::exception& exception) {
    return report(error, TESSERA_INTERNAL, exception.what());
  } catch (...) {
    return report(error, TESSERA_INTERNAL, "something that is no std::exception was thrown");
  }
}

}  // namespace tessera
