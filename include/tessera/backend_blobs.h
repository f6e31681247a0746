// The host's store of bytes for plug-ins that compile: what one process compiled, later ones and
// other models need not. tessera/backend.h does not include this file.
//
//   if (const auto code = blobs.get(key)) return load(*code);
//   const BlobClaim claim(blobs, key);                         // others that want it wait
//   if (const auto code = blobs.get(key)) return load(*code);  // another one has made it
//   blobs.put(key, compile());
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "tessera/backend.h"

namespace tessera::plugin {

// See tessera_host::get_blob.
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
  friend class BlobClaim;
  const tessera_host* host_;
};

// The right to make the blob of `key`, which the object has while it lives. The constructor waits
// for others that have it; if that takes too long, or with a host that is too old, there is no such
// right, and several may make the blob.
class BlobClaim {
 public:
  BlobClaim(const Blobs& blobs, std::string key) : host_(blobs.host_), key_(std::move(key)) {
    const bool can_claim =
        host_ != nullptr && host_->struct_size >= kMinHostBytes && host_->claim_blob != nullptr;
    if (!can_claim || host_->claim_blob(host_, key_.c_str()) == 0) host_ = nullptr;
  }
  ~BlobClaim() {
    if (host_ != nullptr) host_->release_blob(host_, key_.c_str());
  }
  BlobClaim(const BlobClaim&) = delete;
  BlobClaim& operator=(const BlobClaim&) = delete;

 private:
  static constexpr size_t kMinHostBytes = offsetof(tessera_host, release_blob) + sizeof(void*);

  const tessera_host* host_;  // null: there is nothing to release
  std::string key_;
};

}  // namespace tessera::plugin
