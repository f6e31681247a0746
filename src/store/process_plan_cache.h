// The plans that this process found, by fingerprint, and whose turn it is to find one: of many
// binds of one model at once, one measures.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/file_handle.h"
#include "cache/fingerprint.h"
#include "cache/stored_file.h"
#include "price/cost_table.h"

namespace tessera {

class CacheRecord;

// Safe from any thread.
class ProcessPlanCache {
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

  // Has other processes know that this one uses a file of caches: they do not remove it to make
  // room.
  void hold(const std::filesystem::path& file) {
    FileHandle handle = cache::hold_in_use(file);
    const std::lock_guard lock(mutex_);
    held_[file] = std::move(handle);
  }

  // True once: to warn, one time, that plans are kept elsewhere than in the working folder.
  bool is_first_to_tell_of_folder() { return !is_folder_told_.exchange(true); }

  // nullopt where somebody else is finding the plan.
  std::optional<Turn> try_turn(const cache::Fingerprint& fingerprint) {
    Turn turn{.mutex = mutex_of(fingerprint)};
    turn.lock = std::unique_lock(*turn.mutex, std::try_to_lock);
    if (!turn.lock.owns_lock()) return std::nullopt;
    return turn;
  }

  // Waits until nobody else is.
  Turn wait_for_turn(const cache::Fingerprint& fingerprint) {
    Turn turn{.mutex = mutex_of(fingerprint)};
    turn.lock = std::unique_lock(*turn.mutex);
    return turn;
  }

 private:
  std::shared_ptr<std::mutex> mutex_of(const cache::Fingerprint& fingerprint) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::mutex>& mutex = turns_[fingerprint];
    if (!mutex) mutex = std::make_shared<std::mutex>();
    return mutex;
  }

  std::map<std::filesystem::path, FileHandle> held_;
  std::atomic<bool> is_folder_told_ = false;
  mutable std::mutex mutex_;
  std::map<cache::Fingerprint, Found> plans_;
  std::map<cache::Fingerprint, std::shared_ptr<std::mutex>> turns_;
};

}  // namespace tessera
