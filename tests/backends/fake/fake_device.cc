#include "fake_device.h"

#include <algorithm>
#include <utility>

#include "shared_state.h"

namespace tessera::fake {
namespace {

using plugin::DevicePosition;
using plugin::Failure;

// The number of released allocations whose addresses are still recognised.
constexpr size_t kMaxReleased = 256;

// Takes those entries out of `all` that belong to `device`.
template <class Entry>
std::vector<std::shared_ptr<Entry>> take_own(std::map<void*, std::shared_ptr<Entry>>& all,
                                             const FakeDevice* device) {
  std::vector<std::shared_ptr<Entry>> own;
  std::erase_if(all, [&](const auto& entry) {
    if (entry.second->device != device) return false;
    own.push_back(entry.second);
    return true;
  });
  return own;
}

}  // namespace

std::string Range::text() const {
  return "[" + std::to_string(position.offset_bytes) + "," +
         std::to_string(position.offset_bytes + bytes) + ")";
}

FakeDevice::FakeDevice(int32_t ordinal)
    : state_(&shared_state()),
      ordinal_(ordinal),
      name_(ordinal == 0 ? "fake" : "fake:" + std::to_string(ordinal)) {
  const std::scoped_lock lock(state_->mutex);
  memory_bytes_ = state_->ledger.settings().memory_bytes;
  max_allocation_bytes_ = state_->ledger.settings().max_allocation_bytes;
  can_copy_from_peers_ = state_->ledger.settings().peer != FAKE_NO_PEER_COPIES;
}

FakeDevice::~FakeDevice() {
  // The threads of a forked process's queues do not exist here, so nothing can be waited for.
  if (is_forked()) return;
  std::unique_lock lock(state_->mutex);
  std::vector<std::shared_ptr<Queue>> queues = take_own(state_->queues, this);
  const std::vector<std::shared_ptr<Event>> events = take_own(state_->events, this);
  const std::vector<std::shared_ptr<Allocation>> memory = take_own(state_->memory, this);
  std::erase_if(state_->released, [&](void* handle) { return !state_->memory.contains(handle); });
  int64_t live = 0;
  for (const std::shared_ptr<Allocation>& allocation : memory) {
    if (allocation->contents == nullptr) continue;
    ++live;
    state_->ledger.count_bytes(ordinal_, -allocation->bytes);
  }
  state_->ledger.count(ordinal_, &fake_counters::live_queues, -static_cast<int64_t>(queues.size()));
  state_->ledger.count(ordinal_, &fake_counters::live_events, -static_cast<int64_t>(events.size()));
  for (const std::shared_ptr<Queue>& queue : queues) state_->detector.close_queue(queue->clock);
  if (!queues.empty() || !events.empty() || live > 0) {
    report("device " + name_ + " was closed with " + std::to_string(queues.size()) + " queues, " +
           std::to_string(events.size()) + " events and " + std::to_string(live) +
           " allocations that were not released");
  }
  lock.unlock();
  queues.clear();  // waits for them
}

// --- Rules of every call
// --------------------------------------------------------------------------

bool FakeDevice::is_forked() const { return state_ != &shared_state(); }

std::unique_lock<std::mutex> FakeDevice::enter() const {
  if (is_forked()) {
    throw Failure(TESSERA_DEVICE_FAILED, "device '" + name_ + "' was opened before fork");
  }
  return std::unique_lock(state_->mutex);
}

// Counts a call and fails if it is told to. Returns the failure if it is one of an operation that
// the call enqueues.
std::optional<Failure> FakeDevice::begin_call(const std::string& call, bool can_fail_later) {
  Ledger& ledger = state_->ledger;
  const bool is_failing = ledger.is_failing_call(ordinal_);
  if (ledger.is_lost(ordinal_)) throw Failure(TESSERA_DEVICE_FAILED, "the device is lost");
  if (!is_failing) return std::nullopt;
  const fake_settings& settings = ledger.settings();
  const int32_t kind = settings.fail_mode == FAKE_FAILS_OUT_OF_MEMORY ? TESSERA_OUT_OF_MEMORY
                                                                      : TESSERA_DEVICE_FAILED;
  const std::string reason = call + " was told to fail";
  state_->has_failed = true;
  if (can_fail_later && settings.fail_later != 0) return Failure(kind, reason);
  if (settings.fail_mode == FAKE_IS_LOST) ledger.is_lost(ordinal_) = true;
  throw Failure(kind, reason);
}

void FakeDevice::report(const std::string& violation) {
  state_->ledger.report(ordinal_, violation);
}

void FakeDevice::refuse(const std::string& violation) {
  report(violation);
  throw Failure(TESSERA_INVALID_ARGUMENT, violation);
}

Queue& FakeDevice::find_queue(void* queue, const std::string& user) {
  const auto found = state_->queues.find(queue);
  if (found == state_->queues.end()) refuse(user + " uses a queue that does not exist");
  if (found->second->device != this) refuse(user + " uses a queue of another device");
  return *found->second;
}

Event& FakeDevice::find_event(void* event, const std::string& user, bool must_be_own) {
  const auto found = state_->events.find(event);
  if (found == state_->events.end()) refuse(user + " uses an event that does not exist");
  if (must_be_own && found->second->device != this) {
    refuse(user + " uses an event of another device");
  }
  return *found->second;
}

Allocation& FakeDevice::find_memory(const Range& range, const std::string& user) {
  const auto found = state_->memory.find(range.position.handle);
  if (found == state_->memory.end()) refuse(user + " uses a handle that allocate() never returned");
  Allocation& memory = *found->second;
  if (memory.contents == nullptr) refuse(user + " uses " + memory.name + ", which was released");
  if (memory.device != range.device) refuse(user + " uses " + memory.name);
  const int64_t offset = range.position.offset_bytes;
  if (offset < 0 || range.bytes < 0 || offset > memory.bytes - range.bytes) {
    refuse(user + " uses " + range.text() + " of " + memory.name + ", which has " +
           std::to_string(memory.bytes) + " bytes");
  }
  if (offset % kAlignmentBytes != 0) {
    report(user + " uses offset " + std::to_string(offset) + " of " + memory.name +
           ", which is no multiple of " + std::to_string(kAlignmentBytes));
  }
  return memory;
}

// --- Memory and queues
// ----------------------------------------------------------------------------

void* FakeDevice::allocate(int64_t bytes) {
  const std::unique_lock lock = enter();
  begin_call("allocate", false);
  if (bytes < 1) refuse("allocate on " + name_ + " got " + std::to_string(bytes) + " bytes");
  const int64_t limit = state_->ledger.settings().memory_bytes;
  const int64_t live = state_->ledger.counters(ordinal_).live_bytes;
  if (limit > 0 && bytes > limit - live) {
    throw Failure(TESSERA_OUT_OF_MEMORY, "it has " + std::to_string(limit - live) + " of " +
                                             std::to_string(limit) + " bytes left");
  }
  const int64_t most = state_->ledger.settings().max_allocation_bytes;
  if (most > 0 && bytes > most) {
    throw Failure(TESSERA_OUT_OF_MEMORY,
                  "it allocates at most " + std::to_string(most) + " bytes at once");
  }
  const std::string text = "memory " + std::to_string(++allocations_) + " of " + name_;
  const auto made = std::make_shared<Allocation>(bytes, this, text);
  state_->memory.emplace(made->handle(), made);
  state_->ledger.count_bytes(ordinal_, bytes);
  return made->handle();
}

void FakeDevice::release_memory(void* handle) {
  if (is_forked()) return;
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->memory.find(handle);
  if (found == state_->memory.end()) {
    return report("release_memory on " + name_ + " got a handle that allocate() never returned");
  }
  Allocation& memory = *found->second;
  if (memory.device != this) {
    return report("release_memory on " + name_ + " got " + memory.name);
  }
  if (memory.contents == nullptr) return report(memory.name + " was released twice");
  if (const auto access = memory.history.find_unordered(state_->detector.host())) {
    report(memory.name + " was released, and " + *access->operation +
           ", which uses it, is not known to be done");
  }
  memory.contents.reset();
  state_->ledger.count_bytes(ordinal_, -memory.bytes);
  state_->released.push_back(handle);
  if (state_->released.size() <= kMaxReleased) return;
  state_->memory.erase(state_->released.front());
  state_->released.pop_front();
}

void* FakeDevice::create_queue() {
  const std::unique_lock lock = enter();
  begin_call("create_queue", false);
  Ledger& ledger = state_->ledger;
  const uint64_t seed =
      static_cast<uint64_t>(ledger.settings().seed) * 1'000'003 + state_->queues_made++;
  const auto made =
      std::make_shared<Queue>(this, state_->detector.open_queue(), ledger.is_lost(ordinal_), seed);
  state_->queues.emplace(made.get(), made);
  ledger.count(ordinal_, &fake_counters::live_queues);
  return made.get();
}

void FakeDevice::release_queue(void* queue) {
  if (is_forked()) return;
  std::unique_lock lock(state_->mutex);
  const auto found = state_->queues.find(queue);
  if (found == state_->queues.end() || found->second->device != this) {
    return report("release_queue on " + name_ + " got a queue that it does not have");
  }
  std::shared_ptr<Queue> released = found->second;
  state_->queues.erase(found);
  state_->ledger.count(ordinal_, &fake_counters::live_queues, -1);
  const bool may_have_work = state_->has_failed || state_->ledger.is_lost(ordinal_) ||
                             released->work.failure().has_value();
  if (!may_have_work && !state_->detector.host().includes(released->clock.last_work)) {
    report("a queue of " + name_ + " was released whose work is not known to be done");
  }
  state_->detector.close_queue(released->clock);
  lock.unlock();
  released.reset();  // waits for its work
}

}  // namespace tessera::fake
