// The operations of a fake device: functions that enqueue work, and functions that wait for it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fake_device.h"
#include "shared_state.h"

namespace tessera::fake {
namespace {

using plugin::DevicePosition;
using plugin::Failure;

std::chrono::nanoseconds random_delay(Queue& queue, int64_t max_microseconds) {
  if (max_microseconds == 0) return {};
  std::uniform_int_distribution<int64_t> nanoseconds(0, max_microseconds * 1000);
  return std::chrono::nanoseconds(nanoseconds(queue.random));
}

std::chrono::nanoseconds copy_duration(const fake_settings& settings, int64_t bytes) {
  const int64_t rate = settings.copy_bytes_per_us;
  const double transfer =
      rate == 0 ? 0 : 1000 * static_cast<double>(bytes) / static_cast<double>(rate);
  return std::chrono::nanoseconds(settings.copy_ns + static_cast<int64_t>(transfer));
}

}  // namespace

Range FakeDevice::range(const plugin::Buffer& buffer, bool is_write) const {
  if (buffer.data == nullptr || buffer.bytes == 0) return {this, {}, 0, is_write};
  if (!buffer.is_on_device()) return {nullptr, {buffer.data, 0}, buffer.bytes, is_write};
  const bool is_in_place = is_write && buffer.request == TESSERA_REQUEST_IN_PLACE;
  return {this, buffer.position(), buffer.bytes, is_write, is_in_place};
}

void FakeDevice::check_overlaps(const Work& work) {
  for (size_t index = 0; index < work.ranges.size(); ++index) {
    const Range& written = work.ranges[index];
    if (!written.is_write || written.is_in_place || written.bytes == 0) continue;
    for (size_t other = 0; other < work.ranges.size(); ++other) {
      const Range& range = work.ranges[other];
      if (other == index || range.position.handle != written.position.handle) continue;
      const int64_t begin = range.position.offset_bytes;
      const int64_t written_begin = written.position.offset_bytes;
      if (begin >= written_begin + written.bytes || written_begin >= begin + range.bytes) continue;
      refuse(*work.name + " writes " + written.text() + ", which overlaps its range " +
             range.text());
    }
  }
}

void FakeDevice::note_accesses(const Work& work, Queue& queue) {
  const Epoch epoch = state_->detector.enqueue(queue.clock);
  queue.clock.last_work = epoch;
  if (state_->ledger.settings().detects == 0) return;
  RaceDetector& detector = state_->detector;
  for (const Range& range : work.ranges) {
    if (range.bytes == 0) continue;
    const bool is_host = range.device == nullptr;
    const int64_t begin =
        is_host ? reinterpret_cast<int64_t>(range.position.handle) : range.position.offset_bytes;
    const Access access{begin, begin + range.bytes, range.is_write, epoch, work.name};
    std::optional<std::string> race;
    if (is_host) {
      race = detector.access_host(access, queue.clock.clock);
    } else {
      Allocation& memory = *state_->memory.at(range.position.handle);
      race = detector.access(memory.history, memory.name, access, queue.clock.clock);
    }
    if (race) report(*race);
  }
  state_->ledger.count(ordinal_, &fake_counters::forgotten_accesses, detector.take_forgotten());
}

void FakeDevice::enqueue(void* queue, Work work) {
  const std::unique_lock lock = enter();
  const std::optional<Failure> failure = begin_call(*work.name, true);
  Queue& target = find_queue(queue, *work.name);
  const bool is_copy = work.byte_counter != nullptr;
  std::vector<std::byte*> addresses;
  std::vector<std::shared_ptr<Pages>> used;
  for (const Range& range : work.ranges) {
    if (is_copy && range.bytes < 1) refuse(*work.name + " got no bytes");
    if (range.device == nullptr) {
      if (!is_copy) refuse(*work.name + " got a buffer in the host's memory");
      addresses.push_back(static_cast<std::byte*>(range.position.handle));
    } else if (range.bytes == 0) {
      static std::byte nothing{};
      addresses.push_back(&nothing);
    } else {
      const Allocation& memory = find_memory(range, *work.name);
      used.push_back(memory.contents);
      addresses.push_back(memory.contents->begin() + range.position.offset_bytes);
    }
  }
  check_overlaps(work);
  note_accesses(work, target);
  Ledger& ledger = state_->ledger;
  ledger.count(ordinal_, work.counter);
  if (is_copy) ledger.count(ordinal_, work.byte_counter, work.ranges.front().bytes);
  Operation operation;
  operation.body = [body = std::move(work.body), addresses = std::move(addresses),
                    used = std::move(used)] { body(addresses); };
  const fake_settings& settings = ledger.settings();
  operation.duration = is_copy ? copy_duration(settings, work.ranges.front().bytes)
                               : std::chrono::nanoseconds(settings.kernel_ns);
  push(target, std::move(operation), failure);
}

// Puts an operation into a queue; it fails with `failure` if there is one.
void FakeDevice::push(Queue& queue, Operation operation, const std::optional<Failure>& failure) {
  const fake_settings& settings = state_->ledger.settings();
  operation.failure = failure;
  operation.loses_device = settings.fail_mode == FAKE_IS_LOST;
  operation.delay = random_delay(queue, settings.delay_us);
  if (settings.one_at_a_time != 0) operation.alone = &state_->execution;
  queue.work.push(std::move(operation));
}

void FakeDevice::enqueue_copy(void* queue, const std::string& call, const Range& from,
                              const Range& to, int64_t fake_counters::* counter,
                              int64_t fake_counters::* byte_counter) {
  Work work;
  work.name = std::make_shared<const std::string>(call + " on " + name_);
  work.ranges = {from, to};
  work.body = [bytes = static_cast<size_t>(from.bytes)](std::span<std::byte* const> addresses) {
    std::memcpy(addresses[1], addresses[0], bytes);
  };
  work.counter = counter;
  work.byte_counter = byte_counter;
  enqueue(queue, std::move(work));
}

void FakeDevice::copy_to_device(void* queue, const void* from, const DevicePosition& to,
                                int64_t bytes) {
  enqueue_copy(queue, "copy_to_device", {nullptr, {const_cast<void*>(from), 0}, bytes},
               range(to, bytes, true), &fake_counters::copies_to_device,
               &fake_counters::bytes_to_device);
}

void FakeDevice::copy_to_host(void* queue, const DevicePosition& from, void* to, int64_t bytes) {
  enqueue_copy(queue, "copy_to_host", range(from, bytes, false), {nullptr, {to, 0}, bytes, true},
               &fake_counters::copies_to_host, &fake_counters::bytes_to_host);
}

void FakeDevice::copy(void* queue, const DevicePosition& from, const DevicePosition& to,
                      int64_t bytes) {
  enqueue_copy(queue, "copy", range(from, bytes, false), range(to, bytes, true),
               &fake_counters::copies_within, &fake_counters::bytes_within);
}

void FakeDevice::copy_from_peer(void* queue, plugin::DeviceInterface& peer,
                                const DevicePosition& from, const DevicePosition& to,
                                int64_t bytes) {
  {
    const std::unique_lock lock = enter();
    if (state_->ledger.settings().peer != FAKE_PEER_COPIES) {
      throw Failure(TESSERA_UNSUPPORTED, "this device does not copy from other devices");
    }
  }
  const auto& other = dynamic_cast<FakeDevice&>(peer);
  enqueue_copy(queue, "copy_from_peer", other.range(from, bytes, false), range(to, bytes, true),
               &fake_counters::copies_from_peer, &fake_counters::bytes_from_peer);
}

// --- Events
// ---------------------------------------------------------------------------------------

void* FakeDevice::create_event() {
  const std::unique_lock lock = enter();
  begin_call("create_event", false);
  const auto made = std::make_shared<Event>(Event{this});
  state_->events.emplace(made.get(), made);
  state_->ledger.count(ordinal_, &fake_counters::live_events);
  return made.get();
}

void FakeDevice::release_event(void* event) {
  if (is_forked()) return;
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->events.find(event);
  if (found == state_->events.end() || found->second->device != this) {
    return report("release_event on " + name_ + " got an event that it does not have");
  }
  state_->events.erase(found);
  state_->ledger.count(ordinal_, &fake_counters::live_events, -1);
}

void FakeDevice::record_event(void* queue, void* event) {
  const std::string call = "record_event on " + name_;
  const std::unique_lock lock = enter();
  const std::optional<Failure> failure = begin_call(call, true);
  Queue& target = find_queue(queue, call);
  Event& recorded = find_event(event, call, true);
  if (recorded.latest && !state_->detector.host().includes(recorded.latest->epoch)) {
    report(call + " uses an event that is not known to be complete since it was last recorded");
  }
  recorded.latest = std::make_shared<Recording>();
  recorded.latest->epoch = state_->detector.enqueue(target.clock);
  recorded.latest->clock = target.clock.clock;
  state_->ledger.count(ordinal_, &fake_counters::events_recorded);
  Operation operation;
  operation.completes = recorded.latest;
  push(target, std::move(operation), failure);
}

void FakeDevice::wait_event(void* queue, void* event) {
  const std::string call = "wait_event on " + name_;
  const std::unique_lock lock = enter();
  const std::optional<Failure> failure = begin_call(call, true);
  Queue& target = find_queue(queue, call);
  const Event& awaited = find_event(event, call, false);
  if (!awaited.latest) refuse(call + " got an event that was never recorded");
  target.clock.clock.join(awaited.latest->clock);
  state_->detector.enqueue(target.clock);
  state_->ledger.count(ordinal_, &fake_counters::events_waited);
  Operation operation;
  operation.waits_for = awaited.latest;
  push(target, std::move(operation), failure);
}

void FakeDevice::synchronise_event(void* event) {
  const std::string call = "synchronise_event on " + name_;
  std::shared_ptr<Recording> awaited;
  {
    const std::unique_lock lock = enter();
    awaited = find_event(event, call, true).latest;
    if (!awaited) refuse(call + " got an event that was never recorded");
  }
  finish_synchronising(call, awaited->wait(), awaited->clock);
}

void FakeDevice::synchronise_queue(void* queue) {
  const std::string call = "synchronise_queue on " + name_;
  std::unique_lock lock = enter();
  find_queue(queue, call);
  const std::shared_ptr<Queue> drained = state_->queues.at(queue);
  const VectorClock clock = drained->clock.clock;
  lock.unlock();
  finish_synchronising(call, drained->work.drain(), clock);
}

// The calling thread has waited for everything that `clock` includes. Also if this call fails,
// nothing uses the host's memory any more.
void FakeDevice::finish_synchronising(const std::string& call,
                                      const std::optional<Failure>& failure,
                                      const VectorClock& clock) {
  const std::unique_lock lock = enter();
  state_->detector.host().join(clock);
  state_->ledger.count(ordinal_, &fake_counters::synchronisations);
  begin_call(call, false);
  if (!failure) return;
  state_->has_failed = true;
  throw Failure(*failure);
}

double FakeDevice::elapsed_seconds(void* begin, void* end) {
  const std::string call = "elapsed_seconds on " + name_;
  std::shared_ptr<Recording> recordings[2];
  {
    const std::unique_lock lock = enter();
    begin_call(call, false);
    recordings[0] = find_event(begin, call, true).latest;
    recordings[1] = find_event(end, call, true).latest;
    for (const std::shared_ptr<Recording>& recording : recordings) {
      if (!recording) refuse(call + " got an event that was never recorded");
      if (state_->detector.host().includes(recording->epoch)) continue;
      report(call + " got an event that is not known to be complete");
    }
  }
  for (const std::shared_ptr<Recording>& recording : recordings) recording->wait();
  return std::chrono::duration<double>(recordings[1]->time() - recordings[0]->time()).count();
}

void FakeDevice::check_usable() {
  const std::unique_lock lock = enter();
  if (state_->ledger.is_lost(ordinal_)) throw Failure(TESSERA_DEVICE_FAILED, "the device is lost");
}

void note_host_access(const std::shared_ptr<const std::string>& operation, const void* address,
                      int64_t bytes, bool is_write) {
  SharedState& state = shared_state();
  const std::scoped_lock lock(state.mutex);
  if (bytes <= 0 || state.ledger.settings().detects == 0) return;
  const auto begin = reinterpret_cast<int64_t>(address);
  const Access access{begin, begin + bytes, is_write, state.detector.act(), operation};
  const std::optional<std::string> race = state.detector.access_host(access, state.detector.host());
  if (race) state.ledger.report(0, *race);
}

}  // namespace tessera::fake
