#include "backend/kernel.h"

#include <exception>

#include "tessera/error.h"

namespace tessera {

void Kernel::fail(const std::string& location, const tessera_error& error) const {
  const Status status{error.kind, error.message};
  // Reference kernels name the node themselves, in the user's terms.
  const std::string prefix = location + ": ";
  const bool names_place = status.message.starts_with(prefix);
  std::string message = names_place ? status.message.substr(prefix.size()) : status.message;
  if (!names_place) message = "backend '" + backend_ + "' failed: " + message;
  throw Error(status.kind(), location, message);
}

std::string Kernel::save() const {
  struct Saved {
    std::string bytes;
    std::exception_ptr failure;  // must not be thrown through the plug-in
  } saved;
  const Status status = call_plugin([&](tessera_error* error) {
    return abi_.save(
        abi_.self,
        [](void* user, const void* data, size_t size) {
          Saved& all = *static_cast<Saved*>(user);
          try {
            all.bytes.append(static_cast<const char*>(data), size);
          } catch (...) {
            all.failure = std::current_exception();
          }
        },
        &saved, error);
  });
  if (saved.failure) std::rethrow_exception(saved.failure);
  if (!status.is_fine()) throw Error(status.kind(), "backend '" + backend_ + "'", status.message);
  return std::move(saved.bytes);
}

}  // namespace tessera
