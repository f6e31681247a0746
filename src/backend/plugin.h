// One opened plug-in: the owner of its library and of what it told about itself.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/host.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Immutable but for propose(), which the contract allows from one thread at a time. A library stays
// loaded when its plug-in goes: threads and exit handlers of it may outlive any count.
class Plugin {
 public:
  // Opens the shared library `file` and checks what it says of itself. Throws Unsupported with the
  // reason: not a library, a missing symbol, another contract version, a failure or exception while
  // opening, or something about it that is not legal.
  static std::shared_ptr<const Plugin> open(const std::filesystem::path& file,
                                            std::shared_ptr<HostServices> services);
  // The same for a plug-in that is linked in.
  static std::shared_ptr<const Plugin> open_linked(tessera_open_backend_function open,
                                                   const std::string& place,
                                                   std::shared_ptr<HostServices> services);

  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const tessera_backend& face() const { return face_; }
  const std::filesystem::path& file() const { return file_; }  // "" for one that is linked in
  // Of the libraries that came into the process with it.
  const std::vector<std::filesystem::path>& libraries() const { return libraries_; }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  // All version ingredients in one text: what packs and measurements depend on.
  const std::string& ingredients() const { return ingredients_; }
  const tessera_host* host() const { return host_.face(); }
  // Held while propose() runs.
  std::mutex& propose_mutex() const { return propose_mutex_; }

 private:
  Plugin(tessera_open_backend_function open, const std::string& place,
         std::shared_ptr<HostServices> services);
  void release();

  HostTable host_;
  std::filesystem::path file_;
  std::vector<std::filesystem::path> libraries_;
  tessera_backend face_ = {};
  std::string name_;
  std::string version_;
  std::string ingredients_;
  mutable std::mutex propose_mutex_;
};

// Says what is wrong with what a plug-in told of itself, or "".
std::string explain_illegal(const tessera_backend& backend);

}  // namespace tessera
