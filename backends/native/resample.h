// From where each element of a resized axis takes its value, as Resize in ONNX's Operators.md says.
// Coordinates are computed in float32, as frameworks do, so that ties fall the same way.
// The reference has its own of these in src/ops, which a plug-in cannot include and should not: an
// optimised path that shared code with what it is judged by would share its mistakes.
#pragma once

#include <cstdint>
#include <vector>

#include "table_copy.h"

namespace tessera::native {

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };

// coordinate_transformation_mode.
enum class Coordinates : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  TfCropAndResize
};

// nearest_mode. Legacy is what version 10 means: up where it shrinks, else down.
enum class Rounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil, Legacy };

struct ResampleOptions {
  Interpolation interpolation = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::Asymmetric;
  Rounding rounding = Rounding::Floor;
  float cubic_coefficient = -0.75F;
  bool is_outside_excluded = false;  // elements outside the input weigh nothing
  bool is_antialiased = false;       // the filter is widened where the output is smaller
  float extrapolation_value = 0;     // outside the input, for TfCropAndResize
};

struct ResampleAxis {
  int64_t input = 0;
  int64_t output = 0;
  float scale = 1;
  float crop_start = 0;  // for TfCropAndResize
  float crop_end = 1;
};

// Whether nothing changes along the axis.
bool is_unchanged(const ResampleOptions& options, const ResampleAxis& axis);

SourceTable nearest_table(const ResampleOptions& options, const ResampleAxis& axis);

// One axis as a matrix with few entries in each row: the output at a place is the sum of `count`
// elements of the input, each with its weight.
struct Taps {
  int64_t count = 0;
  std::vector<int32_t> sources;     // output x count
  std::vector<float> weights;       // likewise
  std::vector<uint8_t> is_outside;  // for each place: extrapolated
};

Taps taps_of(const ResampleOptions& options, const ResampleAxis& axis);

}  // namespace tessera::native
