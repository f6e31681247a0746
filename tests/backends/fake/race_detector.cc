#include "race_detector.h"

#include <utility>

namespace tessera::fake {

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
