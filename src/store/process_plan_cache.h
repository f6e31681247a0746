// The plans that this process found last, by fingerprint, and turns to search for them: if several
// threads bind one model at the same time, only one of them measures.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/files/file_handle.h"
#include "base/files/file_stamp.h"
#include "base/threads/fork.h"
#include "cache/fingerprint.h"
#include "cache/stored_file.h"

namespace tessera {

class CacheRecord;

// Thread-safe.
class ProcessPlanCache {
 public:
  // Held while a thread searches for the plan.
  struct EntryLock {
    std::shared_ptr<LongHeldMutex> mutex;
    std::unique_lock<LongHeldMutex> lock;  // declared after `mutex`, so it is unlocked first
  };

  // The least recently used plans beyond this number are forgotten: files keep those that took long
  // to find.
  static constexpr size_t kMaxPlans = 256;

  explicit ProcessPlanCache(size_t max_plans = kMaxPlans) : max_plans_(max_plans) {}

  // The record of the search that found the plan; null if there is none.
  std::shared_ptr<const CacheRecord> find(const cache::Fingerprint& fingerprint) {
    const ForkSafeLock lock(mutex_);
    const auto found = plans_.find(fingerprint);
    if (found == plans_.end()) return nullptr;
    found->second.last_use = ++uses_;
    return found->second.record;
  }

  void add(const cache::Fingerprint& fingerprint, std::shared_ptr<const CacheRecord> record) {
    const ForkSafeLock lock(mutex_);
    plans_[fingerprint] = {std::move(record), ++uses_};
    if (plans_.size() <= max_plans_) return;
    plans_.erase(
        std::min_element(plans_.begin(), plans_.end(), [](const auto& one, const auto& other) {
          return one.second.last_use < other.second.last_use;
        }));
  }

  size_t size() const {
    const ForkSafeLock lock(mutex_);
    return plans_.size();
  }

  // Marks a cache file as used by this process while anybody holds the result, so that other
  // processes do not remove it to free space.
  std::shared_ptr<const void> mark_in_use(const std::filesystem::path& file) {
    const ForkSafeLock lock(mutex_);
    drop_expired(marks_);
    std::weak_ptr<const FileHandle>& mark = marks_[file];
    std::shared_ptr<const FileHandle> held = mark.lock();
    if (held == nullptr || !is_named(*held, file)) {
      held = std::make_shared<const FileHandle>(cache::hold_in_use(file));
      mark = held;
    }
    return held;
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
  struct Entry {
    std::shared_ptr<const CacheRecord> record;
    uint64_t last_use = 0;
  };

  // Whether `file` is still the name of the open file, because somebody may have replaced it.
  static bool is_named(const FileHandle& handle, const std::filesystem::path& file) {
    const std::optional<FileStamp> opened = stamp_of(handle.get());
    const std::optional<FileStamp> named = stamp_of(file);
    return opened && named && opened->device == named->device && opened->inode == named->inode;
  }

  // Removes entries that nobody holds any more.
  template <class Key, class Held>
  static void drop_expired(std::map<Key, std::weak_ptr<Held>>& all) {
    std::erase_if(all, [](const auto& item) { return item.second.expired(); });
  }

  std::shared_ptr<LongHeldMutex> mutex_of(const cache::Fingerprint& fingerprint) {
    const ForkSafeLock lock(mutex_);
    drop_expired(entry_mutexes_);
    std::weak_ptr<LongHeldMutex>& known = entry_mutexes_[fingerprint];
    std::shared_ptr<LongHeldMutex> mutex = known.lock();
    if (mutex == nullptr) known = mutex = std::make_shared<LongHeldMutex>();
    return mutex;
  }

  const size_t max_plans_;
  std::atomic<bool> has_warned_of_folder_ = false;
  mutable std::mutex mutex_;
  uint64_t uses_ = 0;
  std::map<cache::Fingerprint, Entry> plans_;
  std::map<cache::Fingerprint, std::weak_ptr<LongHeldMutex>> entry_mutexes_;
  std::map<std::filesystem::path, std::weak_ptr<const FileHandle>> marks_;
};

}  // namespace tessera
