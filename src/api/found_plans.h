// The plans that this process found, by fingerprint, and whose turn it is to find one: of many
// binds of one model at once, one measures.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "cache/fingerprint.h"
#include "tune/cost_table.h"

namespace tessera {

// Safe from any thread.
class FoundPlans {
 public:
  // Held by whoever is finding the plan.
  struct Turn {
    std::shared_ptr<std::mutex> mutex;
    std::unique_lock<std::mutex> lock;  // unlocked before its mutex goes
  };

  std::optional<tuning::KnownPlan> find(const cache::Fingerprint& fingerprint) const {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(fingerprint);
    if (found == plans_.end()) return std::nullopt;
    return found->second;
  }

  void add(const cache::Fingerprint& fingerprint, tuning::KnownPlan plan) {
    const std::lock_guard lock(mutex_);
    plans_[fingerprint] = std::move(plan);
  }

  // Waits until nobody else is.
  Turn wait_for_turn(const cache::Fingerprint& fingerprint) {
    Turn turn;
    {
      const std::lock_guard lock(mutex_);
      std::shared_ptr<std::mutex>& mutex = turns_[fingerprint];
      if (!mutex) mutex = std::make_shared<std::mutex>();
      turn.mutex = mutex;
    }
    turn.lock = std::unique_lock(*turn.mutex);
    return turn;
  }

 private:
  mutable std::mutex mutex_;
  std::map<cache::Fingerprint, tuning::KnownPlan> plans_;
  std::map<cache::Fingerprint, std::shared_ptr<std::mutex>> turns_;
};

}  // namespace tessera
