#include "engine/device_context.h"

#include "tessera/error.h"

namespace tessera {

DeviceContext::DeviceContext(const Device& device)
    : device_(device), queue_(std::make_unique<DeviceQueue>(device)) {}

DeviceContext::~DeviceContext() {
  if (lost_.empty() && !device_.plugin().is_forked()) abandon_work();
}

void DeviceContext::reserve_arena(int64_t bytes) {
  if (arena_ && arena_->bytes() >= bytes) return;
  // Both arenas at once may not fit, and enqueued work may still use the old one.
  if (arena_) synchronise();
  arena_.reset();
  arena_ = std::make_unique<DeviceMemory>(device_, bytes);
}

void DeviceContext::abandon_work() noexcept {
  try {
    synchronise();
  } catch (...) {
    try {
      lost_ = device_.explain_unusable();
      if (lost_.empty()) queue_ = std::make_unique<DeviceQueue>(device_);
    } catch (const Error& error) {
      lost_ = error.message();
    } catch (...) {
      lost_ = "there was not enough memory to go on";
    }
  }
}

std::string DeviceContext::explain_unusable() const {
  if (!lost_.empty()) return "it failed in an earlier run: " + lost_;
  if (device_.plugin().is_forked()) return device_.explain_unusable();
  return "";
}

}  // namespace tessera
