#include "matmul/panel_copy.h"

#include <algorithm>

#include "matmul/gemm_kernels.h"

namespace tessera::native {

namespace {

// `count` panels of `columns` columns each.
StridedCopy copy_of(const PanelSource& source, int64_t panel, int64_t count, int64_t columns) {
  LoopNest nest;
  nest.add(count, panel * source.column_stride, panel * source.depth);
  const int64_t parts = std::max<int64_t>(source.parts, 1);
  const int64_t length = source.depth / parts;
  nest.add(parts, 1, length * panel);
  nest.add(length, source.depth_stride, panel);
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
  if (whole > 0) {
    whole_ = copy_of(source, panel_, whole, panel_);
    whole_units_ = whole_.units();
  }
  last_ = copy_of(source, panel_, 1, last_columns_);
}

void PanelCopy::run(int64_t begin, int64_t end, const float* from, float* to) const {
  if (begin < whole_units_) whole_.run(begin, std::min(end, whole_units_), from, to);
  if (end > whole_units_ && begin < end) copy_last(from + last_from_offset_, to + last_to_offset_);
}

void PanelCopy::copy_last(const float* from, float* to) const {
  last_.run(0, last_.units(), from, to);
  for (int64_t row = 0; row < depth_; ++row) {
    std::fill(to + row * panel_ + last_columns_, to + (row + 1) * panel_, 0.0F);
  }
}

}  // namespace tessera::native
