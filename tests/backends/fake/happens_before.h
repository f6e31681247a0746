// Vector clocks and histories of accesses, with which the fake device finds accesses that nothing
// orders. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System" (1978);
// Mattern, "Virtual Time and Global States of Distributed Systems" (1989). Accesses are kept as
// epochs, as in Flanagan and Freund, "FastTrack" (2009). RaceDetector applies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tessera::fake {

// A moment of one component: of a queue or of a thread of the host.
struct Epoch {
  size_t component = 0;
  uint64_t time = 0;
};

// The set of everything that happened before a moment: for each component, everything up to a time.
class VectorClock {
 public:
  uint64_t time_of(size_t component) const {
    return component < times_.size() ? times_[component] : 0;
  }
  bool includes(const Epoch& epoch) const { return epoch.time <= time_of(epoch.component); }
  void join(const VectorClock& other);
  // Begins the next moment of `component`.
  Epoch advance(size_t component);
  void set(const Epoch& epoch);

 private:
  std::vector<uint64_t> times_;
};

// One operation's access to the bytes [begin, end).
struct Access {
  int64_t begin = 0;
  int64_t end = 0;
  bool is_write = false;
  Epoch epoch;
  std::shared_ptr<const std::string> operation;  // "kernel Relu on fake"
};

// The accesses to one memory that a later access may race with.
class AccessHistory {
 public:
  // If there are more accesses than this, some are forgotten.
  static constexpr size_t kMaxAccesses = 4096;

  // Adds `access`, made at `clock`. Returns an earlier access to the same bytes that is not ordered
  // before it although one of the two writes. Accesses in `settled` are ordered before all accesses
  // that follow, so they are removed.
  std::optional<Access> add(const Access& access, const VectorClock& clock,
                            const VectorClock& settled);
  // An access that `clock` does not include.
  std::optional<Access> find_unordered(const VectorClock& clock) const;

  // The number of accesses that were forgotten since the last call.
  int64_t take_forgotten();

 private:
  void keep_rest(const Access& earlier, const Access& access);

  std::vector<Access> accesses_;
  std::vector<Access> rest_;  // scratch of add()
  int64_t forgotten_ = 0;
};

// The operations that are ordered before the next operation of a queue.
struct QueueClock {
  size_t component = 0;
  VectorClock clock;
  Epoch last_work;  // the last kernel or copy
};

// Finds accesses that nothing orders, when they are enqueued: the order that waits and
// synchronisations require is known then, so a report depends on no timing. Not thread-safe.
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
