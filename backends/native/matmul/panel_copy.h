// Copies of matrices into panels, for kernels that pack their operands.
#pragma once

#include <cstdint>

#include "copy/strided_copy.h"
#include "matmul/packed_product.h"

namespace tessera::native {

// Copies a matrix into panels, by tiled transposes if that is faster. The source is not empty.
// Constant: many threads may use one object.
class PanelCopy {
 public:
  // Throws Failure (TESSERA_UNSUPPORTED) as StridedCopy does.
  explicit PanelCopy(const PanelSource& source);

  // packed_floats() of the source.
  int64_t floats() const { return floats_; }
  // The work in units, which threads may share.
  int64_t units() const { return whole_units_ + (last_columns_ == 0 ? 0 : 1); }
  // Copies units [begin, end).
  void run(int64_t begin, int64_t end, const float* from, float* to) const;
  void run_all(const float* from, float* to) const { run(0, units(), from, to); }

 private:
  void copy_last(const float* from, float* to) const;

  int64_t depth_;
  int64_t panel_;
  int64_t last_columns_;      // of a partial panel at the end; 0: there is none
  int64_t last_from_offset_;  // of that panel
  int64_t last_to_offset_;
  int64_t floats_;
  int64_t whole_units_ = 0;
  StridedCopy whole_;  // of all whole panels
  StridedCopy last_;
};

}  // namespace tessera::native
