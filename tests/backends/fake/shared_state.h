// Everything that the fake devices of one process share, with its lock: memory, queues and events
// of all devices, so that the use of another device's memory can be told from other mistakes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "fake_memory.h"
#include "happens_before.h"
#include "ledger.h"
#include "work_queue.h"

namespace tessera::fake {

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
