#include "base/errors/log.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/threads/fork.h"

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
  {
    const ForkSafeLock lock(mutex_);
    if (seen_.contains(message)) return;
    // Programs that run for long meet ever new shapes and models, which messages name.
    if (seen_.size() >= kMaxRemembered) seen_.clear();
    seen_.insert(message);
  }
  // Not under the mutex: the callback may take long, for example for the lock of an interpreter.
  const Turn turn("log " + std::to_string(reinterpret_cast<uintptr_t>(this)));
  callback_(message);
}

std::vector<std::string> Log::messages() const {
  const ForkSafeLock lock(mutex_);
  return {seen_.begin(), seen_.end()};
}

}  // namespace tessera
