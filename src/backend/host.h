// The services of the host for plug-ins: the functions in tessera_host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "tessera/backend_abi.h"

namespace tessera {

// State shared by all plug-ins of one set. Thread-safe.
class HostServices {
 public:
  explicit HostServices(Log::Callback log = {}) : log_(std::move(log)) {}

  const Log& log() const { return log_; }
  // Blobs live as long as this object.
  std::optional<std::string> get_blob(const std::string& key) const;
  void put_blob(const std::string& key, std::string bytes);

 private:
  Log log_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
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
