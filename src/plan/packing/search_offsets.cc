#include "plan/packing/search_offsets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/containers/at.h"
#include "plan/packing/mixed_bits.h"

namespace tessera {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;
// The table of impossible states begins with the smaller size and grows up to the larger one.
constexpr size_t kMinRememberedStates = size_t{1} << 15U;
constexpr size_t kMaxRememberedStates = size_t{1} << 22U;
// The effort between two questions whether the search is over: some milliseconds.
constexpr int64_t kEffortBetweenQuestions = 1'000'000;
// The limit of nested decisions. Each takes some hundred bytes of stack, and a thread has only a
// few megabytes.
constexpr int kMaxDecisions = 4000;

uint64_t mixed(uint64_t one, int64_t other) {
  return mixed_bits(mixed_bits(one) ^ static_cast<uint64_t>(other));
}

bool is_alike(const GridBuffer& one, const GridBuffer& other) {
  return one.first == other.first && one.end == other.end && one.units == other.units;
}

}  // namespace

OffsetSearch::OffsetSearch(std::vector<GridBuffer> buffers) : buffers_(std::move(buffers)) {
  int sections = 0;
  for (const GridBuffer& buffer : buffers_) sections = std::max(sections, buffer.end);
  members_.resize(at(sections));
  beginning_.resize(at(sections));
  for (size_t index = 0; index < buffers_.size(); ++index) {
    beginning_[at(buffers_[index].first)].push_back(static_cast<int>(index));
    for (int section = buffers_[index].first; section < buffers_[index].end; ++section) {
      members_[at(section)].push_back(static_cast<int>(index));
    }
  }
  is_dirty_.assign(at(sections), false);
  failures_.assign(at(sections), 1);
  impossible_.assign(kMinRememberedStates, 0);
}

SearchResult OffsetSearch::search(int64_t height, const SearchLimits& limits, uint64_t seed,
                                  const SearchHeuristics& heuristics) {
  reset(height);
  limits_ = limits;
  heuristics_ = heuristics;
  random_ = seed;
  for (double& failures : failures_) failures = 1 + (failures - 1) * heuristics.kept_failures;
  for (const int64_t load : loads_) {
    if (load > height) return SearchResult::Impossible;
  }
  return solve_parts(0, static_cast<int>(members_.size()));
}

void OffsetSearch::reset(int64_t height) {
  height_ = height;
  effort_ = 0;
  next_question_ = kEffortBetweenQuestions;
  is_over_ = false;
  decisions_ = 0;
  trail_.clear();
  offsets_.assign(buffers_.size(), 0);
  is_placed_.assign(buffers_.size(), 0);
  lowest_.assign(buffers_.size(), 0);
  tops_.assign(members_.size(), 0);
  floors_.assign(members_.size(), 0);
  loads_.assign(members_.size(), 0);
  crossings_.assign(members_.size(), 0);
  for (const GridBuffer& buffer : buffers_) {
    for (int section = buffer.first; section < buffer.end; ++section) {
      loads_[at(section)] += buffer.units;
      if (section > buffer.first) ++crossings_[at(section)];
    }
  }
}

bool OffsetSearch::is_spent() {
  if (limits_.is_over && effort_ >= next_question_) {
    next_question_ = effort_ + kEffortBetweenQuestions;
    is_over_ = is_over_ || limits_.is_over();
  }
  return is_over_ || effort_ > limits_.effort;
}

// Counts that the current branch is impossible because of `section`.
bool OffsetSearch::fail_in(int section) {
  ++failures_[at(section)];
  return false;
}

void OffsetSearch::set(int64_t& target, int64_t value) {
  trail_.push_back({&target, target});
  target = value;
}

void OffsetSearch::undo_to(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) *trail_.back().target = trail_.back().old;
  for (const int section : dirty_) is_dirty_[at(section)] = false;
  dirty_.clear();
}

void OffsetSearch::mark_dirty(int section) {
  if (is_dirty_[at(section)]) return;
  is_dirty_[at(section)] = true;
  dirty_.push_back(section);
}

bool OffsetSearch::raise_floor(int section, int64_t level) {
  if (level <= floors_[at(section)]) return true;
  set(floors_[at(section)], level);
  if (level + loads_[at(section)] > height_) return fail_in(section);
  for (const int buffer : members_[at(section)]) {
    if (!is_placed(buffer)) raise_buffer(buffer, level);
  }
  return true;
}

void OffsetSearch::raise_buffer(int buffer, int64_t level) {
  const GridBuffer& raised = buffers_[at(buffer)];
  if (level <= lowest_[at(buffer)]) return;
  set(lowest_[at(buffer)], level);
  for (int section = raised.first; section < raised.end; ++section) mark_dirty(section);
}

// Raises the floor of a section to the lowest level of the buffers that are not placed yet. These
// must be stacked, each at its lowest level or higher; returns whether they fit below the height.
bool OffsetSearch::check_section(int section) {
  by_level_.clear();
  for (const int buffer : members_[at(section)]) {
    if (!is_placed(buffer)) {
      by_level_.emplace_back(lowest_[at(buffer)], buffers_[at(buffer)].units);
    }
  }
  effort_ += static_cast<int64_t>(members_[at(section)].size());
  if (by_level_.empty()) return true;
  std::sort(by_level_.begin(), by_level_.end());
  int64_t units_above = 0;
  for (auto entry = by_level_.rbegin(); entry != by_level_.rend(); ++entry) {
    units_above += entry->second;
    if (entry->first + units_above > height_) return fail_in(section);
  }
  return raise_floor(section, by_level_.front().first);
}

bool OffsetSearch::propagate() {
  while (!dirty_.empty()) {
    const int section = dirty_.back();
    dirty_.pop_back();
    is_dirty_[at(section)] = false;
    if (!check_section(section)) return false;
  }
  return true;
}

// Places a buffer at its lowest level. No unplaced buffer can be below it there.
bool OffsetSearch::place(int buffer) {
  const GridBuffer& placed = buffers_[at(buffer)];
  const int64_t offset = lowest_[at(buffer)];
  const int64_t top = offset + placed.units;
  offsets_[at(buffer)] = offset;
  set(is_placed_[at(buffer)], 1);
  bool fits = true;
  for (int section = placed.first; section < placed.end; ++section) {
    set(loads_[at(section)], loads_[at(section)] - placed.units);
    set(tops_[at(section)], top);
    if (section > placed.first) set(crossings_[at(section)], crossings_[at(section)] - 1);
    fits = fits && raise_floor(section, top);
    mark_dirty(section);
  }
  return fits && propagate();
}

// The lowest level of `buffer` if it rests on a buffer that is not placed yet.
int64_t OffsetSearch::level_on_others(int buffer) {
  const GridBuffer& raised = buffers_[at(buffer)];
  int64_t level = kNever;
  for (int section = raised.first; section < raised.end; ++section) {
    effort_ += static_cast<int64_t>(members_[at(section)].size());
    for (const int other : members_[at(section)]) {
      if (other == buffer || is_placed(other)) continue;
      level = std::min(level, lowest_[at(other)] + buffers_[at(other)].units);
    }
  }
  return level;
}

// Decides that none of the choice's buffers rests on the floor: each rests on another buffer.
bool OffsetSearch::skip(const Choice& choice) {
  for (const int buffer : choice.buffers) {
    const int64_t level = level_on_others(buffer);
    if (level + buffers_[at(buffer)].units > height_) return fail_in(choice.section);
    raise_buffer(buffer, level);
  }
  return propagate();
}

bool OffsetSearch::is_supported(int buffer) const {
  const int64_t level = lowest_[at(buffer)];
  const auto begin = tops_.begin() + buffers_[at(buffer)].first;
  const auto end = tops_.begin() + buffers_[at(buffer)].end;
  return level == 0 || std::find(begin, end, level) != end;
}

// Raises the buffers that nothing would support at their lowest level.
bool OffsetSearch::raise_unsupported(const Part& part) {
  bool has_raised = true;
  while (has_raised) {
    has_raised = false;
    for (int section = part.begin; section < part.end; ++section) {
      for (const int buffer : beginning_[at(section)]) {
        if (is_placed(buffer) || is_supported(buffer)) continue;
        const int64_t level = level_on_others(buffer);
        if (level <= lowest_[at(buffer)]) continue;
        if (level + buffers_[at(buffer)].units > height_) return fail_in(section);
        raise_buffer(buffer, level);
        has_raised = true;
      }
    }
    if (!propagate()) return false;
  }
  return true;
}

bool OffsetSearch::fits_below_all_others(int buffer) const {
  const GridBuffer& moved = buffers_[at(buffer)];
  int64_t bottom = 0;
  int64_t ceiling = kNever;
  for (int section = moved.first; section < moved.end; ++section) {
    bottom = std::max(bottom, tops_[at(section)]);
    ceiling = std::min(ceiling, floors_[at(section)]);
    if (bottom + moved.units > ceiling) return false;
  }
  return true;
}

// Whether an unplaced buffer fits into a gap in which nothing will be placed any more. Then a
// packing with a lower sum of offsets exists, and this branch need not be searched.
bool OffsetSearch::has_fillable_gap(const Part& part) {
  for (int section = part.begin; section < part.end; ++section) {
    if (floors_[at(section)] == tops_[at(section)]) continue;
    effort_ += static_cast<int64_t>(members_[at(section)].size());
    for (const int buffer : members_[at(section)]) {
      if (is_placed(buffer) || !fits_below_all_others(buffer)) continue;
      fail_in(section);
      return true;
    }
  }
  return false;
}

// The number of buffers that can rest on the floor of `section`.
int OffsetSearch::count_on_floor(int section) {
  effort_ += static_cast<int64_t>(members_[at(section)].size());
  int count = 0;
  for (const int buffer : members_[at(section)]) {
    count += !is_placed(buffer) && lowest_[at(buffer)] == floors_[at(section)] ? 1 : 0;
  }
  return count;
}

// The number of branches, or that for each failure in the section: the lowest is chosen.
double OffsetSearch::choice_score(int section, int buffers) const {
  if (!heuristics_.prefers_failed_sections) return buffers;
  return (buffers + 1) / failures_[at(section)];  // one more branch: none of the buffers
}

// Of all sections in valleys, selects the one with the best score.
OffsetSearch::Choice OffsetSearch::choose(const Part& part) {
  Choice best{.section = -1};
  double best_score = 0;
  for (int run = part.begin; run < part.end;) {
    const int64_t floor = floors_[at(run)];
    int run_end = run + 1;
    while (run_end < part.end && floors_[at(run_end)] == floor) ++run_end;
    const bool is_valley = (run == part.begin || floors_[at(run - 1)] > floor) &&
                           (run_end == part.end || floors_[at(run_end)] > floor);
    for (int section = run; is_valley && section < run_end; ++section) {
      const double score = choice_score(section, count_on_floor(section));
      if (best.section >= 0 && score >= best_score) continue;
      best.section = section;
      best_score = score;
    }
    run = run_end;
  }
  for (const int buffer : members_[at(best.section)]) {
    const bool is_on_floor = lowest_[at(buffer)] == floors_[at(best.section)];
    if (!is_placed(buffer) && is_on_floor) best.buffers.push_back(buffer);
  }
  return best;
}

// How many sides of a buffer that rests on the floor of its valley touch a higher neighbour, or end
// level with one: 0 to 4.
int OffsetSearch::flush_sides(int buffer) const {
  const GridBuffer& placed = buffers_[at(buffer)];
  const int64_t top = lowest_[at(buffer)] + placed.units;
  int sides = 0;
  for (const int neighbour : {placed.first - 1, placed.end}) {
    const bool is_edge = neighbour < 0 || at(neighbour) == members_.size();
    const int64_t wall = is_edge ? kNever : floors_[at(neighbour)];
    sides += (wall > lowest_[at(buffer)] ? 1 : 0) + (wall == top ? 1 : 0);
  }
  return sides;
}

// Sorts by area or by size, the largest first, with random weights: a try that begins badly ends
// early, and the next try begins differently.
void OffsetSearch::order(std::vector<int>& candidates) {
  std::vector<std::pair<double, int>> keys;
  for (const int buffer : candidates) {
    const GridBuffer& one = buffers_[at(buffer)];
    random_ = mixed_bits(random_);
    double weight = 0.5 + static_cast<double>(random_ % 1024) / 1024;
    if (heuristics_.prefers_area) weight *= one.end - one.first;
    // Each flush side counts as much as a size four times as large.
    if (heuristics_.prefers_flush_buffers) weight *= 1 << 2 * flush_sides(buffer);
    keys.emplace_back(-weight * static_cast<double>(one.units), buffer);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t index = 0; index < keys.size(); ++index) candidates[index] = keys[index].second;
}

// A hash of the state. Two states with equal hashes leave the same packings, except for collisions
// of 63 bits.
uint64_t OffsetSearch::state_of(const Part& part) {
  uint64_t state = mixed_bits(static_cast<uint64_t>(height_));
  for (int section = part.begin; section < part.end; ++section) {
    state += mixed(static_cast<uint64_t>(section), tops_[at(section)]);
    effort_ += static_cast<int64_t>(beginning_[at(section)].size()) + 1;
    for (const int buffer : beginning_[at(section)]) {
      if (is_placed(buffer)) continue;
      state += mixed(~static_cast<uint64_t>(buffer), lowest_[at(buffer)]);
    }
  }
  return state | 1U;  // 0 means empty
}

void OffsetSearch::remember(uint64_t state) {
  if (remembered_ >= impossible_.size() && impossible_.size() < kMaxRememberedStates) {
    std::vector<uint64_t> larger(impossible_.size() * 4, 0);
    for (const uint64_t known : impossible_) larger[known / 2 % larger.size()] = known;
    impossible_ = std::move(larger);
  }
  impossible_[state / 2 % impossible_.size()] = state;
  ++remembered_;
}

// Ranges of sections that no unplaced buffer connects, the range with the least slack first.
std::vector<OffsetSearch::Part> OffsetSearch::parts_of(int begin, int end) const {
  std::vector<Part> parts;
  for (int section = begin; section < end; ++section) {
    if (loads_[at(section)] == 0) continue;
    const int64_t room = height_ - floors_[at(section)] - loads_[at(section)];
    if (section == begin || crossings_[at(section)] == 0) {
      parts.push_back({.begin = section, .end = section + 1, .room = room});
    } else {
      parts.back().end = section + 1;
      parts.back().room = std::min(parts.back().room, room);
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& left, const Part& right) { return left.room < right.room; });
  return parts;
}

// Parts are solved separately, because a placement in one does not affect the others.
SearchResult OffsetSearch::solve_parts(int begin, int end) {
  for (const Part& part : parts_of(begin, end)) {
    const SearchResult result = solve(part);
    if (result != SearchResult::Found) return result;
  }
  return SearchResult::Found;
}

SearchResult OffsetSearch::solve(const Part& part) {
  const size_t mark = trail_.size();
  if (!raise_unsupported(part) || has_fillable_gap(part)) {
    undo_to(mark);
    return SearchResult::Impossible;
  }
  const uint64_t state = state_of(part);
  if (impossible_[state / 2 % impossible_.size()] == state) {
    undo_to(mark);
    return SearchResult::Impossible;
  }
  if (is_spent() || decisions_ == kMaxDecisions) return SearchResult::Unknown;
  ++decisions_;
  const SearchResult result = branch(part, choose(part));
  --decisions_;
  if (result == SearchResult::Impossible) {
    remember(state);
    undo_to(mark);
  }
  return result;
}

SearchResult OffsetSearch::branch(const Part& part, const Choice& choice) {
  std::vector<int> candidates = choice.buffers;
  order(candidates);
  const size_t mark = trail_.size();
  std::vector<GridBuffer> tried;
  for (const int buffer : candidates) {
    const GridBuffer& one = buffers_[at(buffer)];
    const bool was_tried = std::any_of(
        tried.begin(), tried.end(), [&](const GridBuffer& other) { return is_alike(one, other); });
    if (was_tried) continue;
    tried.push_back(one);
    const bool fits = place(buffer);
    const SearchResult result = fits ? solve_parts(part.begin, part.end) : SearchResult::Impossible;
    if (result != SearchResult::Impossible) return result;
    undo_to(mark);
  }
  const bool fits = skip(choice);
  const SearchResult result = fits ? solve_parts(part.begin, part.end) : SearchResult::Impossible;
  if (result == SearchResult::Impossible) undo_to(mark);
  return result;
}

}  // namespace tessera
