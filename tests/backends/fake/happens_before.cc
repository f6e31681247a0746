#include "happens_before.h"

#include <algorithm>
#include <utility>

namespace tessera::fake {

void VectorClock::join(const VectorClock& other) {
  if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
  for (size_t index = 0; index < other.times_.size(); ++index) {
    times_[index] = std::max(times_[index], other.times_[index]);
  }
}

Epoch VectorClock::advance(size_t component) {
  const Epoch next{component, time_of(component) + 1};
  set(next);
  return next;
}

void VectorClock::set(const Epoch& epoch) {
  if (times_.size() <= epoch.component) times_.resize(epoch.component + 1);
  times_[epoch.component] = epoch.time;
}

std::optional<Access> AccessHistory::add(const Access& access, const VectorClock& clock,
                                         const VectorClock& settled) {
  std::optional<Access> racing;
  rest_.clear();
  const auto is_done_with = [&](const Access& earlier) {
    if (settled.includes(earlier.epoch)) return true;
    if (earlier.end <= access.begin || earlier.begin >= access.end) return false;
    const bool is_ordered = clock.includes(earlier.epoch);
    const bool conflicts = access.is_write || earlier.is_write;
    if (conflicts && !is_ordered && !racing) racing = earlier;
    // Accesses that are ordered after this one are ordered after `earlier` too, so a read replaces
    // earlier reads, and a write replaces both.
    if (!is_ordered || (earlier.is_write && !access.is_write)) return false;
    keep_rest(earlier, access);
    return true;
  };
  for (size_t index = 0; index < accesses_.size();) {
    if (!is_done_with(accesses_[index])) {
      ++index;
      continue;
    }
    // The order does not matter.
    if (index + 1 < accesses_.size()) accesses_[index] = std::move(accesses_.back());
    accesses_.pop_back();
  }
  accesses_.insert(accesses_.end(), rest_.begin(), rest_.end());
  accesses_.push_back(access);
  if (accesses_.size() > kMaxAccesses) {
    const size_t excess = accesses_.size() - kMaxAccesses;
    accesses_.erase(accesses_.begin(), accesses_.begin() + static_cast<std::ptrdiff_t>(excess));
    forgotten_ += static_cast<int64_t>(excess);
  }
  return racing;
}

// Keeps those bytes of `earlier` that `access` does not touch.
void AccessHistory::keep_rest(const Access& earlier, const Access& access) {
  if (earlier.begin < access.begin) {
    rest_.push_back(earlier);
    rest_.back().end = access.begin;
  }
  if (earlier.end > access.end) {
    rest_.push_back(earlier);
    rest_.back().begin = access.end;
  }
}

std::optional<Access> AccessHistory::find_unordered(const VectorClock& clock) const {
  const auto found = std::ranges::find_if(
      accesses_, [&](const Access& access) { return !clock.includes(access.epoch); });
  if (found == accesses_.end()) return std::nullopt;
  return *found;
}

int64_t AccessHistory::take_forgotten() { return std::exchange(forgotten_, 0); }

void RaceDetector::set_separate_threads(bool are_separate) {
  are_separate_ = are_separate;
  VectorClock together;
  for (const auto& [component, clock] : hosts_) together.join(clock);
  hosts_ = {{0, together}};
  component_of_.clear();
}

size_t RaceDetector::host_component() {
  if (!are_separate_) return 0;
  const auto [found, is_new] = component_of_.try_emplace(std::this_thread::get_id(), 0);
  if (is_new) {
    found->second = next_component_++;
    hosts_[found->second] = hosts_[0];
  }
  return found->second;
}

VectorClock& RaceDetector::host() { return hosts_[host_component()]; }

QueueClock RaceDetector::open_queue() {
  QueueClock queue;
  queue.clock = host();
  if (unused_.empty()) {
    queue.component = next_component_++;
    return queue;
  }
  // Its times continue, so that accesses of the closed queue do not look later than they were.
  queue.component = unused_.back().component;
  queue.clock.set(unused_.back());
  unused_.pop_back();
  return queue;
}

void RaceDetector::close_queue(const QueueClock& queue) {
  host().join(queue.clock);
  unused_.push_back({queue.component, queue.clock.time_of(queue.component)});
}

Epoch RaceDetector::enqueue(QueueClock& queue) {
  queue.clock.join(host());
  return queue.clock.advance(queue.component);
}

Epoch RaceDetector::act() { return host().advance(host_component()); }

std::optional<std::string> RaceDetector::access(AccessHistory& history, const std::string& memory,
                                                const Access& access, const VectorClock& clock) {
  // If the threads of the host are separate, one of them may not know what another knows.
  const VectorClock nothing;
  const std::optional<Access> racing = history.add(access, clock, are_separate_ ? nothing : host());
  forgotten_ += history.take_forgotten();
  if (!racing) return std::nullopt;
  const auto range = [](int64_t begin, int64_t end) {
    return "[" + std::to_string(begin) + "," + std::to_string(end) + ")";
  };
  return "race: " + *access.operation + (access.is_write ? " writes " : " reads ") + memory +
         range(access.begin, access.end) + ", and nothing orders this after " + *racing->operation +
         ", which " + (racing->is_write ? "wrote " : "read ") + range(racing->begin, racing->end);
}

std::optional<std::string> RaceDetector::access_host(const Access& made, const VectorClock& clock) {
  return access(host_memory_, "the host's memory ", made, clock);
}

}  // namespace tessera::fake
