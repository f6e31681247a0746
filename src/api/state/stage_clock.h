// Times the stages of load() and bind().
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

// A stage ends when the next one begins.
class StageClock {
 public:
  // Called when a stage begins.
  using Watcher = std::function<void(const std::string& stage)>;
  explicit StageClock(Watcher watcher = {}) : watcher_(std::move(watcher)) {}

  void begin(const std::string& stage) {
    end();
    if (watcher_) watcher_(stage);
    records_.push_back({.name = stage, .start = now() - origin_});
    is_open_ = true;
  }
  void end() {
    if (is_open_) records_.back().duration = now() - origin_ - records_.back().start;
    is_open_ = false;
  }
  // Records the bytes that the newest stage produced.
  void note_bytes(int64_t bytes) { records_.back().bytes = bytes; }

  // The start of the clock.
  std::chrono::steady_clock::time_point origin() const { return origin_; }

  std::vector<StageRecord> take() {
    end();
    return std::move(records_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point now() { return Clock::now(); }

  Watcher watcher_;
  Clock::time_point origin_ = now();
  std::vector<StageRecord> records_;
  bool is_open_ = false;
};

}  // namespace tessera
