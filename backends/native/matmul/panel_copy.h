// Packing of a matrix by one thread, in a kernel that does so for each of its units of work.
#pragma once

#include <cstdint>

#include "copy/strided_copy.h"
#include "matmul/packed_product.h"

namespace tessera::native {

// Copies a matrix into panels, as pack_panels() does, by tiled transposes if that is faster. The
// source is not empty and has no parts. Constant: many threads may use one object.
class PanelCopy {
 public:
  // Throws Failure (TESSERA_UNSUPPORTED) as StridedCopy does.
  explicit PanelCopy(const PanelSource& source);

  // packed_floats() of the source.
  int64_t floats() const { return floats_; }
  void run(const float* from, float* to) const;

 private:
  int64_t depth_;
  int64_t panel_;
  int64_t last_columns_;      // of a partial panel at the end; 0: there is none
  int64_t last_from_offset_;  // of that panel
  int64_t last_to_offset_;
  int64_t floats_;
  StridedCopy whole_;  // of all whole panels
  StridedCopy last_;
};

}  // namespace tessera::native
