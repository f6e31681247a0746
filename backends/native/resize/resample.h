// The sources of the elements of a resized axis: a table of nearest elements, or the taps of an
// interpolation filter.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/backend_ops.h"

namespace tessera::native {

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };

struct ResampleOptions {
  Interpolation interpolation = Interpolation::Nearest;
  plugin::ResizeCoordinates coordinates = plugin::ResizeCoordinates::Asymmetric;
  plugin::ResizeRounding rounding = plugin::ResizeRounding::Floor;
  float cubic_coefficient = -0.75F;
  bool is_outside_excluded = false;  // elements outside of the input have weight 0
  bool is_antialiased = false;       // the filter is widened if the output is smaller
  float extrapolation_value = 0;     // outside of the input, for TfCropAndResize
};

// Whether resizing leaves the axis as it is.
bool is_unchanged(const ResampleOptions& options, const plugin::ResizeAxis& axis);

// Fills the table of an axis that changes: for each output the nearest input, or kFill.
void write_nearest(const ResampleOptions& options, const plugin::ResizeAxis& axis,
                   std::span<int64_t> table);

// The number of inputs of which each output along the axis is a sum.
int64_t tap_count(const ResampleOptions& options, const plugin::ResizeAxis& axis);

// The resampling of one axis as a sparse matrix: each output is the sum of tap_count() inputs with
// their weights.
struct Taps {
  int64_t count = 0;
  int32_t* sources = nullptr;     // output x count
  float* weights = nullptr;       // likewise
  uint8_t* is_outside = nullptr;  // for each output: extrapolated
};

// Fills the arrays of `taps`. If `line` is not 0, they are for lines of output x `line` elements:
// ordered tap by tap, with the elements of a line side by side.
void write_taps(const ResampleOptions& options, const plugin::ResizeAxis& axis, int64_t line,
                const Taps& taps);

}  // namespace tessera::native
