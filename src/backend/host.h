// The services of the host for plug-ins: the functions in tessera_host.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "tessera/backend_abi.h"

namespace tessera {

// State shared by all plug-ins of one set. Thread-safe.
class HostServices {
 public:
  // Returns a blob of an earlier process; nullopt if there is none.
  using FindBlob = std::function<std::optional<std::string>(const std::string& key)>;

  explicit HostServices(Log::Callback log = {}, FindBlob find_blob = {})
      : log_(std::move(log)), find_blob_(std::move(find_blob)) {}

  const Log& log() const { return log_; }
  // Blobs live as long as this object; the caller may store those of take_new_blobs() for longer.
  std::optional<std::string> get_blob(const std::string& key);
  void put_blob(const std::string& key, std::string bytes);
  // The blobs, by key, that were put since the last call.
  std::map<std::string, std::string> take_new_blobs();

 private:
  Log log_;
  FindBlob find_blob_;
  std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
  std::set<std::string> new_;  // keys of blobs_
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
