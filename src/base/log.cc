#include "base/log.h"

#include <cstdio>
#include <utility>

namespace tessera {
namespace {

constexpr size_t kMaxRemembered = 1000;

}  // namespace

Log::Log(Callback callback) : callback_(std::move(callback)) {
  if (!callback_) {
    callback_ = [](const std::string& message) {
      std::fprintf(stderr, "tessera: %s\n", message.c_str());
    };
  }
}

void Log::warn(const std::string& message) const {
  const std::scoped_lock lock(mutex_);
  if (seen_.contains(message)) return;
  // Programs that run for long meet ever new shapes and models, which messages name.
  if (seen_.size() >= kMaxRemembered) seen_.clear();
  seen_.insert(message);
  callback_(message);
}

std::vector<std::string> Log::messages() const {
  const std::lock_guard lock(mutex_);
  return {seen_.begin(), seen_.end()};
}

}  // namespace tessera
