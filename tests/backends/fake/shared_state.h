// Everything that the fake devices of one process share, with its lock: memory, queues and events
// of all devices, so that the use of another device's memory can be told from other mistakes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_control.h"
#include "fake_memory.h"
#include "happens_before.h"
#include "work_queue.h"

namespace tessera::fake {

inline constexpr int32_t kMaxDevices = 2;

fake_settings default_settings();
// Reads "devices=2,peer=1"; settings that it lacks have their defaults. Throws Failure.
fake_settings parse_settings(std::string_view text);
// Returns what is wrong with the settings, or "".
std::string explain_illegal(const fake_settings& settings);

// The state that all fake devices of the process share beside memory: settings, counters,
// violations, and the call that fails (ledger.cc). Not thread-safe; fake_device.cc has the lock.
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

class FakeDevice;

struct Queue {
  Queue(FakeDevice* of, QueueClock begin, std::atomic<bool>& is_lost, uint64_t seed)
      : device(of), clock(std::move(begin)), random(seed), work(is_lost) {}

  FakeDevice* device;
  QueueClock clock;
  std::mt19937_64 random;  // of the delays
  WorkQueue work;
};

struct Event {
  FakeDevice* device;
  std::shared_ptr<Recording> latest = {};  // null: never recorded
};

struct SharedState {
  void configure(const fake_settings& settings);

  std::mutex mutex;  // of all that follows; queues have locks of their own for their threads
  Ledger ledger;
  RaceDetector detector;
  std::map<void*, std::shared_ptr<Queue>> queues;
  std::map<void*, std::shared_ptr<Event>> events;
  // Allocations by handle. Released memory stays here for a while, without contents, so that its
  // addresses are not used again and its use is recognised.
  std::map<void*, std::shared_ptr<Allocation>> memory;
  std::deque<void*> released;  // handles, oldest first
  uint64_t queues_made = 0;
  // Since configure(): then queues may be released with work in them.
  bool has_failed = false;
  std::mutex execution;        // of one operation at a time
  bool is_configured = false;  // by a test, so the environment does not count any more
};

// The state of this process. It is never destroyed, because queues may use it until the process
// ends. After a fork, the child process has a new one, since its threads and locks are gone.
SharedState& shared_state();

}  // namespace tessera::fake
