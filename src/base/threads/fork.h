// Keeps the library usable in a process that was forked from a process with several threads. The
// new process has a copy of all memory, but only the thread that called fork().
// docs/decisions/0059-fork.md has the reasons.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace tessera {

// The number of forks, since the library was loaded, on the way from that process to this one.
uint32_t fork_count();

// During the lifetime of this object, its thread works on memory that other threads share, or in a
// library. fork() waits until no other thread is in a section, at most kMaxForkWait, and threads
// that begin one wait for the end of fork(). Sections may be nested.
class NoForkSection {
 public:
  static constexpr std::chrono::milliseconds kMaxForkWait{2000};

  NoForkSection() { begin(); }
  ~NoForkSection() { end(); }
  NoForkSection(const NoForkSection&) = delete;
  NoForkSection& operator=(const NoForkSection&) = delete;

  static void begin();
  static void end();

  // Whether the calling thread is in a section.
  static bool is_inside();
  // For a thread that works for another one, which waits for it in a section: its sections are
  // parts of that one, and never wait.
  class Part {
   public:
    explicit Part(bool is_part);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    bool is_part_;
  };
};

// A mutex that threads may hold for long. If a thread held it at a fork, it is free in the new
// process, so the data that it protects must be sound whenever a fork is possible: change it in a
// NoForkSection.
class LongHeldMutex {
 public:
  LongHeldMutex() = default;
  LongHeldMutex(const LongHeldMutex&) = delete;
  LongHeldMutex& operator=(const LongHeldMutex&) = delete;

  void lock();
  bool try_lock();
  void unlock();

 private:
  // 0, or fork_count() of the holder's process and one of the marks of fork.cc.
  std::atomic<uint32_t> state_ = 0;
};

// Holds a mutex in a NoForkSection: in a new process, the protected data is sound. A mutex that
// a thread may hold for longer than kMaxForkWait must be a LongHeldMutex, to be free there.
template <class Mutex>
class ForkSafeLock {
 public:
  explicit ForkSafeLock(Mutex& mutex) : lock_(mutex) {}

 private:
  const NoForkSection section_;
  const std::lock_guard<Mutex> lock_;
};

// One thread of a process at a time has the turn of a key, for as long as it wants. In a new
// process, no thread has it.
class Turn {
 public:
  // Waits for others that have the turn of an equal key.
  explicit Turn(std::string key);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  struct Turns;
  static Turns& turns();

  std::string key_;
  std::shared_ptr<LongHeldMutex> mutex_;
};

}  // namespace tessera
