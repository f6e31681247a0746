// Bytes that the host keeps for this plug-in between processes, as far as it can.
#pragma once

#include <optional>
#include <string>

#include "tessera/backend.h"

namespace tessera::jit {

class Blobs {
 public:
  // Null: nothing is kept.
  explicit Blobs(const tessera_host* host = nullptr) : host_(host) {}

  std::optional<std::string> get(const std::string& key) const {
    if (host_ == nullptr) return std::nullopt;
    std::string bytes;
    const auto visit = [](void* user, const void* found, size_t size) {
      static_cast<std::string*>(user)->assign(static_cast<const char*>(found), size);
    };
    if (host_->get_blob(host_, key.c_str(), visit, &bytes) == 0) return std::nullopt;
    return bytes;
  }

  void put(const std::string& key, const std::string& bytes) const {
    if (host_ != nullptr) host_->put_blob(host_, key.c_str(), bytes.data(), bytes.size());
  }

 private:
  const tessera_host* host_;
};

}  // namespace tessera::jit
