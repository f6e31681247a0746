// What the host offers to plug-ins: the functions behind tessera_host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "tessera/backend_abi.h"

namespace tessera {

// What all plug-ins of one set share. Safe from any thread.
class HostServices {
 public:
  explicit HostServices(Log::Callback log = {}) : log_(std::move(log)) {}

  const Log& log() const { return log_; }
  // Blobs live as long as this.
  std::optional<std::string> get_blob(const std::string& key) const;
  void put_blob(const std::string& key, std::string bytes);

 private:
  Log log_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
};

// The table of functions for one plug-in, whose blobs are kept apart from those of others by
// `owner`.
class HostTable {
 public:
  HostTable(std::shared_ptr<HostServices> services, std::string owner);
  HostTable(const HostTable&) = delete;
  HostTable& operator=(const HostTable&) = delete;

  const tessera_host* face() const { return &face_; }

 private:
  static HostTable& of(const tessera_host* host);
  // Tells the log, where that can be done without throwing.
  void warn(const char* message) const noexcept;
  void fill_graph_access();
  void fill_services();

  std::shared_ptr<HostServices> services_;
  std::string owner_;
  tessera_host face_ = {};
};

}  // namespace tessera
