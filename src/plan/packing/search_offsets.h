// The exact search of plan_memory() (memory_plan.h).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plan/packing/packing_grid.h"

namespace tessera {

enum class SearchResult : uint8_t {
  Found,
  Impossible,  // proven
  Unknown,     // the effort was spent before a proof or a packing was found
};

// Rules that guide the search. They decide in which order branches are tried, and so how soon a
// packing or a proof is found, but not whether.
struct SearchHeuristics {
  // Branches in sections in which earlier branches often failed, as by the weighted degrees of
  // "Boosting Systematic Search by Weighting Constraints" (Boussemart et al., 2004).
  bool prefers_failed_sections = false;
  // The share of the failures in earlier searches that still counts. If all did, the first searches
  // would decide where all later ones branch.
  double kept_failures = 0.5;
  // Tries buffers first that fill a valley from side to side, or end level with a neighbour.
  bool prefers_flush_buffers = false;
  // Tries buffers with a large area first; otherwise, buffers with a large size.
  bool prefers_area = false;
};

// The limits of one search.
struct SearchLimits {
  int64_t effort = 0;  // buffers to visit, roughly
  std::function<bool()>
      is_over;  // if not null: called every few milliseconds; true ends the search
};

// Decides whether buffers fit into a memory of a given height. A depth-first search in the manner
// of "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
// (Moffitt, ASPLOS 2023), over the packings in which every buffer rests on the ground or on another
// buffer. It differs in what it branches on: it selects a section in a valley of the skyline, tries
// each buffer as the lowest one there, and then tries that no buffer rests on the floor there.
// docs/decisions/0016-memory-planning.md explains which packings are pruned, and why a packing that
// fits always remains.
class OffsetSearch {
 public:
  explicit OffsetSearch(std::vector<GridBuffer> buffers);
  OffsetSearch(const OffsetSearch&) = delete;
  OffsetSearch& operator=(const OffsetSearch&) = delete;

  // Tries to pack into `height` units. `seed` varies the order in which branches are tried. States
  // that are proven impossible, and in which sections branches failed, are remembered for later
  // calls.
  SearchResult search(int64_t height, const SearchLimits& limits, uint64_t seed,
                      const SearchHeuristics& heuristics = {});

  // Of the last search.
  int64_t effort_spent() const { return effort_; }
  int64_t height() const { return height_; }
  // After Found: one offset for each buffer.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Change {
    int64_t* target;
    int64_t old;
  };
  // A section in a valley, and the buffers that can rest on its floor.
  struct Choice {
    int section = 0;
    std::vector<int> buffers;
  };
  struct Part {
    int begin = 0;  // sections [begin, end)
    int end = 0;
    int64_t room = 0;  // slack in units: the minimum of height - floor - load over the sections
  };

  void reset(int64_t height);
  bool is_spent();
  bool fail_in(int section);
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
  bool has_fillable_gap(const Part& part);
  Choice choose(const Part& part);
  int count_on_floor(int section);
  double choice_score(int section, int buffers) const;
  int flush_sides(int buffer) const;
  void order(std::vector<int>& candidates);
  void remember(uint64_t state);
  uint64_t state_of(const Part& part);
  std::vector<Part> parts_of(int begin, int end) const;
  SearchResult solve_parts(int begin, int end);
  SearchResult solve(const Part& part);
  SearchResult branch(const Part& part, const Choice& choice);

  bool is_placed(int buffer) const { return is_placed_[static_cast<size_t>(buffer)] != 0; }

  std::vector<GridBuffer> buffers_;
  std::vector<std::vector<int>> members_;  // by section: the buffers that are live in it
  std::vector<std::vector<int>>
      beginning_;                 // by section: the buffers whose lifetime begins with it
  std::vector<int64_t> offsets_;  // by buffer, if it is placed
  // By buffer. All int64_t, so that one trail can undo all changes.
  std::vector<int64_t> is_placed_;
  std::vector<int64_t> lowest_;  // the lowest possible offset of a buffer that is not placed
  // By section.
  std::vector<int64_t> tops_;       // the end of the highest placed buffer
  std::vector<int64_t> floors_;     // no more buffers will be placed below it
  std::vector<int64_t> loads_;      // the units of the buffers that are not placed
  std::vector<int64_t> crossings_;  // unplaced buffers that are also live in the section before
  std::vector<double> failures_;    // how often a branch failed there, recently, plus one
  std::vector<Change> trail_;
  std::vector<int> dirty_;  // sections to check again
  std::vector<bool> is_dirty_;
  std::vector<uint64_t> impossible_;  // hashes of states; a table indexed by their bits; 0: empty
  size_t remembered_ = 0;             // the number of states that were written to it
  std::vector<std::pair<int64_t, int64_t>> by_level_;
  int64_t height_ = 0;
  int64_t effort_ = 0;
  SearchLimits limits_;
  int64_t next_question_ = 0;  // the effort at which to call limits_.is_over again
  bool is_over_ = false;
  int decisions_ = 0;  // current depth of nested decisions
  SearchHeuristics heuristics_;
  uint64_t random_ = 0;
};

}  // namespace tessera
