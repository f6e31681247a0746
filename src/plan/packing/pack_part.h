// Packs one part of a grid by turns of several searches. memory_plan.h shares the effort among
// parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plan/packing/packing_grid.h"
#include "plan/packing/refute_windows.h"
#include "plan/packing/search_offsets.h"

namespace tessera {

// Begins with the quick packings of first_fit.h. Each call of take_turn() then makes one try of an
// exact search. How long a search takes varies by orders of magnitude with the order in which it
// tries branches, so the tries differ in seed, heuristics and height, and they are cut short.
class PartPacker {
 public:
  // `part` must outlive this object. The quick packings stop at `enough` units.
  PartPacker(const GridPart& part, int64_t enough);

  // All in units, with what lies below the part.
  int64_t offset(size_t buffer) const { return part_.units_below + offsets_[buffer]; }
  int64_t height() const { return part_.units_below + height_; }
  int64_t least() const { return part_.units_below + least_; }  // proven: no packing is lower
  // Problems that are too large are only packed quickly.
  bool can_search() const;

  // Makes one try, which may lower height() or raise least(). Needs can_search(), and that height()
  // exceeds least() and `enough`. Returns the effort that it took, at least 1.
  int64_t take_turn(int64_t enough, const SearchLimits& limits);

 private:
  // The members below do not know what lies below the part.

  // A search for packings of the part's buffers, or of buffers that were merged from them.
  struct Member {
    std::unique_ptr<OffsetSearch> search;
    int64_t try_effort = 0;  // of the first try
    int64_t tries = 0;
    bool is_refuted = false;  // the lowest height of interest is impossible for merged buffers
  };
  struct MergedMember : Member {
    MergedBuffers buffers;
  };

  Member make_member(std::vector<GridBuffer> buffers) const;
  MergedMember make_merged(const MergeOptions& options);
  SearchResult try_once(Member& member, int64_t enough, const SearchLimits& limits);
  void take_merged_turn(int64_t enough, const SearchLimits& limits);
  void take_whole_turn(int64_t enough, const SearchLimits& limits);
  void take_window_turn(int64_t enough, const SearchLimits& limits);
  MergedMember& next_merged();
  MergedMember& next_random_merge();
  void adopt(std::vector<int64_t> offsets);

  const GridPart& part_;
  std::vector<int64_t> offsets_;
  int64_t height_ = 0;
  int64_t least_ = 0;
  Member whole_;
  MergedMember all_merged_;    // everything that fits together is merged
  MergedMember pairs_merged_;  // only pairs of buffers
  MergedMember some_merged_;   // a random share
  int64_t merged_turns_ = 0;
  int64_t some_merged_count_ = 0;  // the number of values that some_merged_ has had
  std::unique_ptr<WindowRefuter> windows_;
  int64_t whole_effort_ = 0;
  int64_t merged_effort_ = 0;
  int64_t window_effort_ = 0;
};

}  // namespace tessera
