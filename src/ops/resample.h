// What Resize and Upsample share: from where in the input each output coordinate takes its value.
// Coordinates are computed in float32, as frameworks do, so that ties fall the same way; sums in
// double.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };

// coordinate_transformation_mode of Resize.
enum class Coordinates : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  TfCropAndResize
};

// nearest_mode of Resize. Legacy is what Resize 10 means: up where it shrinks, else down.
enum class Rounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil, Legacy };

struct ResampleOptions {
  Interpolation interpolation = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::Asymmetric;
  Rounding rounding = Rounding::Floor;
  float cubic_coefficient = -0.75F;
  bool is_outside_excluded = false;  // taps outside the input weigh nothing, instead of the edge
  bool is_antialiased = false;       // widens the filter where the output is smaller
  float extrapolation_value = 0;     // outside the input, for TfCropAndResize
};

struct ResampleAxis {
  int64_t input = 0;
  int64_t output = 0;
  float scale = 1;  // output / input, as the model gives it
  float roi_start = 0;
  float roi_end = 1;
};

// Fills the first output from the first input, which have the dimensions that `axes` say. Bool only
// with Nearest.
void resample(const KernelCall& call, const ResampleOptions& options,
              std::span<const ResampleAxis> axes);

// floor(dim * scale), in float32 as ONNX Runtime computes it. fail()s where the scale is not
// positive or the result exceeds 64 bits.
Dim scaled_dim(const InferContext& context, const Dim& dim, float scale);

}  // namespace tessera::ops
