// The sources of the elements of a resized axis: a table of nearest elements, or the taps of an
// interpolation filter.
#pragma once

#include <cstdint>
#include <vector>

#include "copy/table_copy.h"
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

SourceTable nearest_table(const ResampleOptions& options, const plugin::ResizeAxis& axis);

// The resampling of one axis as a sparse matrix: each output is the sum of `count` input elements
// with their weights.
struct Taps {
  int64_t count = 0;
  std::vector<int32_t> sources;     // output x count
  std::vector<float> weights;       // likewise
  std::vector<uint8_t> is_outside;  // for each output: extrapolated
};

Taps taps_of(const ResampleOptions& options, const plugin::ResizeAxis& axis);

}  // namespace tessera::native
