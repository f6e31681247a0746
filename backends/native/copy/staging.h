// Results too large for the caches are written past them, through a buffer that stays in the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "copy/copy_kernels.h"
#include "hwy/cache_control.h"

namespace tessera::native {

// Writes floats piece by piece. An ordinary store to a line that is not cached reads the line from
// memory first, so a kernel that writes as much as it reads transfers half as much again as needed.
// If the whole output is large, each piece is computed in a buffer, whose lines are then stored
// past the caches, however long the rows of the kernel are. Measured at 64 MiB: a fifth faster.
class StagedWriter {
 public:
  // The largest staged piece, in floats: small, so that reading, computing and storing overlap.
  // Measured: with four times as many, LayerNormalization takes a fifth longer.
  static constexpr int64_t kFloats = 2048;

  // `floats`: the size of the whole output. Staging does not pay in place, because the written
  // lines have just been read.
  StagedWriter(int64_t floats, bool is_in_place)
      : is_staged_(!is_in_place &&
                   floats * static_cast<int64_t>(sizeof(float)) >= kStreamedCopyBytes) {}

  // Calls compute(first, last, target) for ranges of units that together cover [begin, end). It
  // writes unit `first` at `target`. Each unit has `unit` floats; in the end, unit `begin` is at
  // `to`.
  template <class Compute>
  void write(float* to, int64_t begin, int64_t end, int64_t unit, const Compute& compute) const {
    if (!is_staged_ || unit > kFloats) return compute(begin, end, to);
    alignas(64) float buffer[kFloats];
    const int64_t step = kFloats / unit;
    for (int64_t first = begin; first < end; first += step) {
      const int64_t last = std::min(end, first + step);
      compute(first, last, buffer);
      stream_(buffer, to + (first - begin) * unit,
              (last - first) * unit * static_cast<int64_t>(sizeof(float)));
    }
  }

  // To be called once after the last piece of a thread, before other threads read the result.
  void finish() const {
    if (is_staged_) hwy::FlushStream();
  }

 private:
  bool is_staged_;
  StreamLoop stream_ = find_stream_loop();
};

}  // namespace tessera::native
