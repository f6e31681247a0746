// Proves that a packing is impossible from a few adjacent sections alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing/packing_grid.h"
#include "plan/packing/search_offsets.h"

namespace tessera {

// If what is live in a window of time does not fit into a height, all buffers do not fit either. In
// a window, buffers that are live from its first to its last section need no search: they could be
// moved below all others. So a search of a window is short, although the search of all buffers
// would repeat it for each arrangement of everything around it.
class WindowRefuter {
 public:
  explicit WindowRefuter(std::vector<GridBuffer> buffers);

  // Searches the next window: first all of two sections, then all of four, and so on; then again
  // with more effort. Returns whether `height` is proven impossible.
  bool take_turn(int64_t height, const SearchLimits& limits);

  // Of the last turn, at least 1.
  int64_t effort_spent() const { return effort_; }

 private:
  struct Window {
    std::vector<GridBuffer> buffers;  // without those below
    int64_t units_below = 0;          // of the buffers that are live in all sections
    int64_t load = 0;                 // with those below
  };

  Window window_at(int begin, int end) const;
  void advance();

  std::vector<GridBuffer> buffers_;
  int sections_ = 0;
  int begin_ = 0;
  int width_ = 2;
  int64_t effort_of_window_;
  uint64_t passes_ = 0;
  int64_t effort_ = 0;
};

}  // namespace tessera
