// Shared by Resize and Upsample: maps output coordinates to input positions. Sizes make positions
// rational numbers, which are computed without rounding errors that a tie could show. Scales are
// numbers of float32, and so is the arithmetic with them, as in other frameworks, so that ties
// round the same way (half_pixel_symmetric: double). Sums are computed in double.
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

// nearest_mode of Resize. Legacy is the rule of Resize 10: round up when shrinking, else down.
enum class Rounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil, Legacy };

struct ResampleOptions {
  Interpolation interpolation = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::Asymmetric;
  Rounding rounding = Rounding::Floor;
  float cubic_coefficient = -0.75F;
  bool is_outside_excluded =
      false;  // gives taps outside of the input weight 0 instead of the edge value
  bool is_antialiased = false;    // widens the filter if the output is smaller
  float extrapolation_value = 0;  // value outside of the input, for TfCropAndResize
};

// The quotient of two sizes, which float32 may not have.
struct SizeRatio {
  int64_t resized = 1;
  int64_t original = 1;

  double value() const { return static_cast<double>(resized) / static_cast<double>(original); }
};

struct ResampleAxis {
  int64_t input = 0;
  int64_t output = 0;
  // output / input: as the model gives it, or else the ratio of sizes.
  std::optional<float> given_scale = {};
  SizeRatio ratio = {};
  float roi_start = 0;
  float roi_end = 1;

  double scale() const { return given_scale ? double{*given_scale} : ratio.value(); }
};

// Computes the first output from the first input; `axes` gives the dimensions of both. Bool is
// supported with Nearest only.
void resample(const KernelCall& call, const ResampleOptions& options,
              std::span<const ResampleAxis> axes);

// floor(dim * scale), in float32 as ONNX Runtime computes it. fail()s if the scale is not positive
// or the result exceeds 64 bits.
Dim scaled_dim(const InferContext& context, const Dim& dim, float scale);

}  // namespace tessera::ops
