// The exact search behind plan_memory(), in memory_plan.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/packing_grid.h"

namespace tessera {

enum class SearchResult : uint8_t {
  Found,
  Impossible,  // proven
  Unknown,     // the effort was spent
};

// Whether buffers fit in a memory of a given height. Searches depth first, in the manner of
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (Moffitt,
// ASPLOS 2023), among the arrangements in which every buffer rests on the ground or on another one,
// but place by place: in a section of a valley of the skyline it tries each buffer as the lowest
// there, and none. docs/decisions/0016-memory-planning.md says which arrangements are left out, and
// why one that fits is always among those that remain.
class OffsetSearch {
 public:
  explicit OffsetSearch(std::vector<GridBuffer> buffers);
  OffsetSearch(const OffsetSearch&) = delete;
  OffsetSearch& operator=(const OffsetSearch&) = delete;

  // Tries `height` units, looking at about `effort` buffers; `seed` decides which of the ways from
  // one arrangement comes first. What was found to be impossible is remembered for later calls.
  SearchResult search(int64_t height, int64_t effort, uint64_t seed);

  // Of the last search.
  int64_t effort_spent() const { return effort_; }
  // After Found, one for each buffer.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Change {
    int64_t* place;
    int64_t old;
  };
  // The buffers that could lie on the floor of a section, which is as low as its neighbours.
  struct Choice {
    int section = 0;
    std::vector<int> buffers;
  };
  struct Part {
    int begin = 0;  // sections [begin, end)
    int end = 0;
    int64_t room = 0;  // between what must lie there and the height, where there is the least
  };

  void reset(int64_t height);
  void set(int64_t& place, int64_t value);
  void undo_to(size_t mark);
  void mark_dirty(int section);
  bool raise_floor(int section, int64_t level);
  void raise_buffer(int buffer, int64_t level);
  bool check_section(int section);
  bool propagate();
  bool place(int buffer);
  bool skip(const Choice& choice);
  int64_t level_on_others(int buffer);
  bool is_supported(int buffer) const;
  bool raise_unsupported(const Part& part);
  bool fits_below_all_others(int buffer) const;
  bool has_wasted_place(const Part& part);
  Choice choose(const Part& part);
  void order(std::vector<int>& candidates);
  uint64_t state_of(const Part& part);
  std::vector<Part> parts_of(int begin, int end) const;
  SearchResult solve_parts(int begin, int end);
  SearchResult solve(const Part& part);
  SearchResult branch(const Part& part, const Choice& choice);

  bool is_placed(int buffer) const { return is_placed_[static_cast<size_t>(buffer)] != 0; }

  std::vector<GridBuffer> buffers_;
  std::vector<std::vector<int>> members_;  // by section: the buffers that are live there
  std::vector<int64_t> offsets_;           // of buffers that are placed
  // By buffer. Numbers, so that one trail undoes all.
  std::vector<int64_t> is_placed_;
  std::vector<int64_t> lowest_;  // where it can lie at the lowest if it is not placed
  // By section.
  std::vector<int64_t> tops_;       // the end of the highest buffer that is placed
  std::vector<int64_t> floors_;     // below which nothing more will be placed
  std::vector<int64_t> loads_;      // units that are not placed
  std::vector<int64_t> crossings_;  // how many that are not placed are live in the one before, too
  std::vector<Change> trail_;
  std::vector<int> dirty_;  // sections to look at again
  std::vector<bool> is_dirty_;
  std::vector<uint64_t> impossible_;  // states, each in the place that its bits say
  std::vector<std::pair<int64_t, int64_t>> by_level_;
  int64_t height_ = 0;
  int64_t effort_ = 0;
  int64_t effort_limit_ = 0;
  int decisions_ = 0;  // that are open
  uint64_t seed_ = 0;
  uint64_t random_ = 0;
};

}  // namespace tessera
