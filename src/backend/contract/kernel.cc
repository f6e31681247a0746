#include "backend/contract/kernel.h"

#include <exception>

#include "tessera/error.h"

namespace tessera {

void Kernel::fail(const std::string& location, const tessera_error& error) const {
  const Status status{error.kind, error.message};
  // Reference kernels, and kernels of groups, name the node themselves, in the user's terms.
  const std::string prefix = location + ": ";
  const bool names_place = status.message.starts_with(prefix);
  std::string message = names_place ? status.message.substr(prefix.size()) : status.message;
  if (!names_place) message = "backend '" + backend_ + "' failed: " + message;
  throw Error(status.kind(), location, message);
}

namespace {

// The bytes that a plug-in passes to a tessera_bytes_visitor.
struct VisitedBytes {
  std::string bytes;
  std::exception_ptr failure;  // must not be thrown through the plug-in

  static void append(void* user, const void* data, size_t size) {
    VisitedBytes& all = *static_cast<VisitedBytes*>(user);
    try {
      all.bytes.append(static_cast<const char*>(data), size);
    } catch (...) {
      all.failure = std::current_exception();
    }
  }
};

}  // namespace

std::string Kernel::save() const {
  VisitedBytes saved;
  const Status status = call_plugin([&](tessera_error* error) {
    return abi_.save(abi_.self, VisitedBytes::append, &saved, error);
  });
  if (saved.failure) std::rethrow_exception(saved.failure);
  if (!status.is_fine()) throw Error(status.kind(), "backend '" + backend_ + "'", status.message);
  return std::move(saved.bytes);
}

std::optional<std::string> Kernel::describe(int32_t form) const {
  if (abi_.describe == nullptr) return std::nullopt;
  VisitedBytes text;
  const Status status = call_plugin([&](tessera_error* error) {
    return abi_.describe(abi_.self, form, VisitedBytes::append, &text, error);
  });
  if (text.failure) std::rethrow_exception(text.failure);
  if (!status.is_fine()) return std::nullopt;
  return std::move(text.bytes);
}

}  // namespace tessera
