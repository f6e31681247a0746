#include "plan/packing/refute_windows.h"

#include <algorithm>
#include <utility>

#include "plan/packing/first_fit.h"

namespace tessera {
namespace {

// In the first pass; each later one has a multiple of the one before.
constexpr int64_t kFirstEffort = 50'000;
constexpr int64_t kGrowth = 4;
constexpr int64_t kMaxEffort = int64_t{1} << 50U;

// Collecting and quickly packing one buffer takes as long as visiting this many in a search.
constexpr int64_t kEffortOfBuffer = 10;

}  // namespace

WindowRefuter::WindowRefuter(std::vector<GridBuffer> buffers)
    : buffers_(std::move(buffers)), effort_of_window_(kFirstEffort) {
  for (const GridBuffer& buffer : buffers_) sections_ = std::max(sections_, buffer.end);
}

bool WindowRefuter::take_turn(int64_t height, const SearchLimits& limits) {
  const Window window = window_at(begin_, std::min(begin_ + width_, sections_));
  effort_ = kEffortOfBuffer * static_cast<int64_t>(buffers_.size());
  const auto pass = ++passes_;
  const int64_t effort = std::min(limits.effort, effort_of_window_);
  advance();
  if (window.load > height) return true;
  const int64_t room = height - window.units_below;
  const std::vector<int64_t> quick = pack_first_fit(window.buffers, room);
  if (height_of(window.buffers, quick) <= room) return false;
  OffsetSearch search(window.buffers);
  const SearchResult result =
      search.search(room, {.effort = effort, .is_over = limits.is_over}, pass,
                    {.prefers_failed_sections = true, .prefers_flush_buffers = true});
  effort_ += search.effort_spent();
  return result == SearchResult::Impossible;
}

WindowRefuter::Window WindowRefuter::window_at(int begin, int end) const {
  Window window;
  std::vector<int64_t> loads(static_cast<size_t>(end - begin), 0);
  for (const GridBuffer& buffer : buffers_) {
    const int first = std::max(buffer.first, begin);
    const int last = std::min(buffer.end, end);
    if (first >= last) continue;
    for (int section = first; section < last; ++section) {
      loads[static_cast<size_t>(section - begin)] += buffer.units;
    }
    if (first == begin && last == end) {
      window.units_below += buffer.units;
    } else {
      window.buffers.push_back({first - begin, last - begin, buffer.units});
    }
  }
  window.load = *std::max_element(loads.begin(), loads.end());
  return window;
}

// Windows of one width overlap by half. One window of all sections would be the whole problem.
void WindowRefuter::advance() {
  begin_ += width_ / 2;
  if (begin_ + width_ / 2 < sections_) return;
  begin_ = 0;
  width_ *= 2;
  if (width_ < sections_) return;
  width_ = 2;
  effort_of_window_ = std::min(effort_of_window_ * kGrowth, kMaxEffort);
}

}  // namespace tessera
