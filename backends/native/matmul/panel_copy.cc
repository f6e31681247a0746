#include "matmul/panel_copy.h"

#include <algorithm>

#include "matmul/gemm_kernels.h"

namespace tessera::native {

namespace {

// `count` panels of `columns` columns each.
StridedCopy copy_of(const PanelSource& source, int64_t panel, int64_t count, int64_t columns) {
  LoopNest nest;
  nest.add(count, panel * source.column_stride, panel * source.depth);
  nest.add(source.depth, source.depth_stride, panel);
  nest.add(columns, source.column_stride, 1);
  // The panels are read at once, so they are not stored past the caches.
  return {nest, sizeof(float), CopyKernels(), 0};
}

}  // namespace

PanelCopy::PanelCopy(const PanelSource& source)
    : depth_(source.depth), panel_(find_gemm_loops().panel), floats_(packed_floats(source)) {
  const int64_t whole = source.columns / panel_;
  last_columns_ = source.columns % panel_;
  last_from_offset_ = whole * panel_ * source.column_stride;
  last_to_offset_ = whole * panel_ * depth_;
  whole_ = copy_of(source, panel_, whole, panel_);
  last_ = copy_of(source, panel_, 1, last_columns_);
}

void PanelCopy::run(const float* from, float* to) const {
  if (last_to_offset_ > 0) whole_.run(0, whole_.units(), from, to);
  if (last_columns_ == 0) return;
  float* last = to + last_to_offset_;
  last_.run(0, last_.units(), from + last_from_offset_, last);
  for (int64_t row = 0; row < depth_; ++row) {
    std::fill(last + row * panel_ + last_columns_, last + (row + 1) * panel_, 0.0F);
  }
}

}  // namespace tessera::native
