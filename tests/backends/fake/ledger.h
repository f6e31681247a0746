// The state that all fake devices of the process share beside memory: settings, counters,
// violations, and the call that fails. Not thread-safe; fake_device.cc has the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fake_control.h"

namespace tessera::fake {

inline constexpr int32_t kMaxDevices = 2;

fake_settings default_settings();
// Reads "devices=2,peer=1"; settings that it lacks have their defaults. Throws Failure.
fake_settings parse_settings(std::string_view text);
// Returns what is wrong with the settings, or "".
std::string explain_illegal(const fake_settings& settings);

class Ledger {
 public:
  const fake_settings& settings() const { return settings_; }
  // Also restarts the count of calls and repairs lost devices.
  void configure(const fake_settings& settings);

  // Adds to a counter of a device, and to the one of both together.
  void count(int32_t device, int64_t fake_counters::* counter, int64_t amount = 1);
  // Memory was allocated, or released if `bytes` is negative.
  void count_bytes(int32_t device, int64_t bytes);
  const fake_counters& counters(int32_t device) const;  // -1: both together
  void reset_counters();

  // Counts a call of device `device`. Returns whether it is the one that fails.
  bool is_failing_call(int32_t device);

  void report(int32_t device, const std::string& violation);
  const std::vector<std::string>& violations() const { return violations_; }

  std::atomic<bool>& is_lost(int32_t device) { return is_lost_[static_cast<size_t>(device)]; }

 private:
  fake_settings settings_ = default_settings();
  fake_counters together_ = {};
  std::array<fake_counters, kMaxDevices> of_device_ = {};
  int64_t calls_ = 0;  // since fail_at was set
  std::vector<std::string> violations_;
  std::array<std::atomic<bool>, kMaxDevices> is_lost_ = {};
};

}  // namespace tessera::fake
