// Passes failures across the C boundary to plug-ins, in both directions.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {

// The result of a call to a plug-in.
struct Status {
  int32_t code = TESSERA_OK;
  std::string message;
  bool is_fine() const { return code == TESSERA_OK; }
  ErrorKind kind() const;
};

// Copies `message` to the plug-in's memory, truncated if necessary. Returns `code`.
int32_t report(tessera_error* error, int32_t code, const std::string& message) noexcept;
int32_t report(tessera_error* error, const Error& thrown) noexcept;

// Calls `body(tessera_error*) -> int32_t`, which calls the plug-in. Treats an escaping exception, a
// violation of the contract, as a failure.
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

// Runs `body` on behalf of a plug-in and converts exceptions to a status.
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
