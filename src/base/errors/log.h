// Messages for people, passed to a callback: the library itself never writes to stdout.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tessera {

// Passes each distinct message on once. Thread-safe; calls the callback under a lock.
class Log {
 public:
  using Callback = std::function<void(const std::string& message)>;

  // Without a callback, messages go to stderr, one per line.
  explicit Log(Callback callback = {});

  void warn(const std::string& message) const;
  // The messages passed on so far, sorted.
  std::vector<std::string> messages() const;

 private:
  Callback callback_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> seen_;
};

}  // namespace tessera
