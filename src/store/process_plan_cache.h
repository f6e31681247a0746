// The plans that this process found, by fingerprint, and turns to search for them: if several
// threads bind one model at the same time, only one of them measures.
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

// Thread-safe.
class ProcessPlanCache {
 public:
  // Held while a thread searches for the plan.
  struct EntryLock {
    std::shared_ptr<std::mutex> mutex;
    std::unique_lock<std::mutex> lock;  // declared after `mutex`, so it is unlocked first
  };

  // A plan, and the record of its search.
  struct Found {
    tuning::KnownPlan plan;
    // If a budget ended the search: the time spent until then.
    std::optional<double> cut_short_seconds;
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

  // Marks a cache file as used by this process, so that other processes do not remove it to free
  // space.
  void mark_in_use(const std::filesystem::path& file) {
    FileHandle handle = cache::hold_in_use(file);
    const std::lock_guard lock(mutex_);
    held_[file] = std::move(handle);
  }

  // Returns true only at the first call, so that the user is warned once that plans are not kept in
  // the working folder.
  bool claims_folder_warning() { return !has_warned_of_folder_.exchange(true); }

  // nullopt if another thread searches for the plan.
  std::optional<EntryLock> try_lock_entry(const cache::Fingerprint& fingerprint) {
    EntryLock entry_lock{.mutex = mutex_of(fingerprint)};
    entry_lock.lock = std::unique_lock(*entry_lock.mutex, std::try_to_lock);
    if (!entry_lock.lock.owns_lock()) return std::nullopt;
    return entry_lock;
  }

  // Waits until no other thread searches for the plan.
  EntryLock lock_entry(const cache::Fingerprint& fingerprint) {
    EntryLock entry_lock{.mutex = mutex_of(fingerprint)};
    entry_lock.lock = std::unique_lock(*entry_lock.mutex);
    return entry_lock;
  }

 private:
  std::shared_ptr<std::mutex> mutex_of(const cache::Fingerprint& fingerprint) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::mutex>& mutex = entry_mutexes_[fingerprint];
    if (!mutex) mutex = std::make_shared<std::mutex>();
    return mutex;
  }

  std::map<std::filesystem::path, FileHandle> held_;
  std::atomic<bool> has_warned_of_folder_ = false;
  mutable std::mutex mutex_;
  std::map<cache::Fingerprint, Found> plans_;
  std::map<cache::Fingerprint, std::shared_ptr<std::mutex>> entry_mutexes_;
};

}  // namespace tessera
