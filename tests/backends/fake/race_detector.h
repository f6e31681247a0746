// Finds accesses that nothing orders, when they are enqueued: the order that waits and
// synchronisations require is known then, so a report depends on no timing. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "happens_before.h"

namespace tessera::fake {

// The operations that are ordered before the next operation of a queue.
struct QueueClock {
  size_t component = 0;
  VectorClock clock;
  Epoch last_work;  // the last kernel or copy
};

class RaceDetector {
 public:
  // Whether each thread of the host has a clock of its own; otherwise all have the same one. All
  // threads know what any of them knew before.
  void set_separate_threads(bool are_separate);

  // The clock of operations that the calling thread knows to be done.
  VectorClock& host();

  QueueClock open_queue();
  // The host knows everything in the queue to be done. The component is used again.
  void close_queue(const QueueClock& queue);

  // The calling thread enqueues an operation, which happens at the returned epoch.
  Epoch enqueue(QueueClock& queue);
  // The calling thread itself executes an operation, at the returned epoch.
  Epoch act();

  // Adds an access at `clock`, which is that of a queue or host(). Returns a sentence if it races.
  std::optional<std::string> access(AccessHistory& history, const std::string& memory,
                                    const Access& access, const VectorClock& clock);
  // Same as access(), for memory of the host, whose positions are addresses.
  std::optional<std::string> access_host(const Access& access, const VectorClock& clock);

  int64_t take_forgotten() { return std::exchange(forgotten_, 0); }

 private:
  size_t host_component();

  bool are_separate_ = false;
  std::map<std::thread::id, size_t> component_of_;  // of the host's threads, if they are separate
  std::map<size_t, VectorClock> hosts_;             // by component
  std::vector<Epoch> unused_;                       // components of closed queues
  size_t next_component_ = 1;                       // 0: all threads of the host together
  AccessHistory host_memory_;
  int64_t forgotten_ = 0;
};

}  // namespace tessera::fake
