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

class CacheRecord;

// Safe from any thread.
class FoundPlans {
 public:
  // Held by whoever is finding the plan.
  struct Turn {
    std::shared_ptr<std::mutex> mutex;
    std::unique_lock<std::mutex> lock;  // unlocked before its mutex goes
  };

  // A plan, and what was found with it.
  struct Found {
    tuning::KnownPlan plan;
    std::shared_ptr<const CacheRecord> record;
  };

  std::optional<Found> find(const cache::Fingerprint& fingerprint) const {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(fingerprint);
    if (found == plans_.end()) return std::nullopt;
    return found->second;
  }

  void add(const cache::Fingerprint& fingerprint, Found found) {
    const std::lock_guard lock(mutex_);
    plans_[fingerprint] = std::move(found);
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
  std::map<cache::Fingerprint, Found> plans_;
  std::map<cache::Fingerprint, std::shared_ptr<std::mutex>> turns_;
};

}  // namespace tessera
