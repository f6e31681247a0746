// The services of the host for plug-ins: the functions in tessera_host.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/errors/log.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The right to make a blob, which ends with the last copy. Null: somebody else has it.
using BlobClaim = std::shared_ptr<const void>;

// Where blobs are kept beyond this process or this object. Each function may be null and is
// thread-safe.
struct BlobKeeper {
  // Returns a blob that was kept; nullopt if there is none.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Keeps a new blob at once; returns false if it does not.
  std::function<bool(const std::string& key, const std::string& bytes)> keep;
  // Claims the blob among processes, without waiting. Not null if claims are impossible.
  std::function<BlobClaim(const std::string& key)> try_claim;
};

// State shared by all plug-ins of one set. Thread-safe.
class HostServices {
 public:
  // A compiler that takes longer makes others compile the same thing, which is only slower.
  static constexpr std::chrono::milliseconds kMaxClaimWait = std::chrono::seconds(20);

  explicit HostServices(Log::Callback log = {}, BlobKeeper keeper = {},
                        std::chrono::milliseconds max_claim_wait = kMaxClaimWait)
      : log_(std::move(log)), keeper_(std::move(keeper)), max_claim_wait_(max_claim_wait) {}

  const Log& log() const { return log_; }
  // Blobs live as long as this object; the caller may store those of take_new_blobs() for longer.
  std::optional<std::string> get_blob(const std::string& key);
  void put_blob(const std::string& key, std::string bytes);
  // The blobs, by key, that were put since the last call and that the keeper has not kept.
  std::map<std::string, std::string> take_new_blobs();

  // All blobs, by key, that plug-ins have put or found.
  std::map<std::string, std::string> blobs();

  // The right to make a blob, which one thread of one process has at a time. This object must
  // outlive it.
  BlobClaim try_claim(const std::string& key);
  // Same as try_claim(), but waits for others; returns false if that takes too long. See
  // tessera_host::claim_blob.
  bool claim(const std::string& key);
  void release(const std::string& key);

 private:
  void end_claim(const std::string& key);

  Log log_;
  BlobKeeper keeper_;
  std::chrono::milliseconds max_claim_wait_;
  std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
  std::set<std::string> new_;      // keys of blobs_
  std::set<std::string> claimed_;  // keys that a thread of this process makes
  std::condition_variable claim_has_ended_;
  std::map<std::string, BlobClaim> held_;  // by claim()
};

// The table of functions for one plug-in. Its blobs are separated from those of other plug-ins by
// `owner`.
class HostTable {
 public:
  HostTable(std::shared_ptr<HostServices> services, std::string owner);
  HostTable(const HostTable&) = delete;
  HostTable& operator=(const HostTable&) = delete;

  const tessera_host* abi() const { return &abi_; }

 private:
  static HostTable& of(const tessera_host* host);
  // Writes to the log; drops the message if logging throws.
  void warn(const char* message) const noexcept;
  void fill_graph_access();
  void fill_services();

  std::shared_ptr<HostServices> services_;
  std::string owner_;
  tessera_host abi_ = {};
};

}  // namespace tessera
