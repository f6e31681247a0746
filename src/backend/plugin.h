// The owner of one opened plug-in: its library and its description.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/host.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Immutable except for propose(), which the contract allows from one thread at a time. The library
// stays loaded after the plug-in is destroyed, because its threads and exit handlers may still run.
class Plugin {
 public:
  // Opens the shared library `file` and checks its description. Throws Unsupported with the reason:
  // not a library, a missing symbol, another contract version, a failure or exception while
  // opening, or an illegal description.
  static std::shared_ptr<const Plugin> open(const std::filesystem::path& file,
                                            std::shared_ptr<HostServices> services);
  // Same as open(), for a plug-in that is linked in.
  static std::shared_ptr<const Plugin> open_linked(tessera_open_backend_function open,
                                                   const std::string& location,
                                                   std::shared_ptr<HostServices> services);

  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  const tessera_backend& abi() const { return abi_; }
  const std::filesystem::path& file() const { return file_; }  // "" if linked in
  // The libraries that were loaded with it.
  const std::vector<std::filesystem::path>& libraries() const { return libraries_; }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  // All version ingredients in one string; packs and measurements depend on it.
  const std::string& ingredients() const { return ingredients_; }
  const tessera_host* host() const { return host_.abi(); }
  // nullopt if it compiles nothing.
  std::optional<tessera_compile_counts> compile_counts() const;
  // Adds what another process compiled for this one to compile_counts().
  void add_compiled_elsewhere(int64_t codes, double seconds) const;
  // Whether it was opened before this process was forked. Its threads and devices are the parent's.
  bool is_forked() const { return opened_in_ != ::getpid(); }
  // Held while propose() runs.
  std::mutex& propose_mutex() const { return propose_mutex_; }

 private:
  Plugin(tessera_open_backend_function open, const std::string& location,
         std::shared_ptr<HostServices> services);
  void release();

  HostTable host_;
  std::filesystem::path file_;
  std::vector<std::filesystem::path> libraries_;
  tessera_backend abi_ = {};
  std::string name_;
  std::string version_;
  std::string ingredients_;
  pid_t opened_in_ = ::getpid();
  mutable std::mutex propose_mutex_;
  mutable std::atomic<int64_t> compiled_elsewhere_ = 0;
  mutable std::atomic<double> seconds_elsewhere_ = 0;
};

// The reason why the description of a plug-in is illegal; "" if it is legal.
std::string explain_illegal(const tessera_backend& backend);

}  // namespace tessera
