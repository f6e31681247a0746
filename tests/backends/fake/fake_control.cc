#include "fake_control.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "fake_device.h"
#include "shared_state.h"

using tessera::fake::shared_state;
using tessera::fake::SharedState;

int32_t fake_configure(const fake_settings* settings) {
  if (!tessera::fake::explain_illegal(*settings).empty()) return -1;
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  state.configure(*settings);
  state.is_configured = true;
  return 0;
}

int32_t fake_configure_text(const char* text) {
  try {
    const fake_settings settings = tessera::fake::parse_settings(text);
    return fake_configure(&settings);
  } catch (const std::exception&) {
    return -1;
  }
}

void fake_get_settings(fake_settings* settings) {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  *settings = state.ledger.settings();
}

void fake_get_counters(int32_t device, fake_counters* counters) {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  *counters = state.ledger.counters(std::min(device, tessera::fake::kMaxDevices - 1));
}

void fake_reset_counters() {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  state.ledger.reset_counters();
}

int64_t fake_violation(int64_t index, char* text, size_t size) {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  const std::vector<std::string>& all = state.ledger.violations();
  if (index < 0 || index >= static_cast<int64_t>(all.size())) return -1;
  const std::string& found = all[static_cast<size_t>(index)];
  if (size > 0) {
    const size_t length = std::min(size - 1, found.size());
    std::memcpy(text, found.data(), length);
    text[length] = '\0';
  }
  return static_cast<int64_t>(found.size());
}

void fake_note_host_access(const void* address, int64_t bytes, int32_t is_write) {
  static const auto kName = std::make_shared<const std::string>("the host");
  tessera::fake::note_host_access(kName, address, bytes, is_write != 0);
}
