#include "base/log.h"

#include <cstdio>
#include <utility>

namespace tessera {

Log::Log(Callback callback) : callback_(std::move(callback)) {
  if (!callback_) {
    callback_ = [](const std::string& message) {
      std::fprintf(stderr, "tessera: %s\n", message.c_str());
    };
  }
}

void Log::warn(const std::string& message) const {
  const std::scoped_lock lock(mutex_);
  if (seen_.insert(message).second) callback_(message);
}

std::vector<std::string> Log::messages() const {
  const std::lock_guard lock(mutex_);
  return {seen_.begin(), seen_.end()};
}

}  // namespace tessera
