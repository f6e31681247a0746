#include "ops/resize/resample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory_resource>

#include "ops/convert_element.h"
#include "ops/strided_view.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

bool is_identity(const ResampleOptions& options, const ResampleAxis& axis) {
  return axis.input == axis.output && axis.scale() == 1 &&
         options.coordinates != Coordinates::TfCropAndResize;
}

// The position in the input of output coordinate `output_index`, for the modes whose formula has
// the scale; see Resize in ONNX's Operators.md. Computed in float32, except for HalfPixelSymmetric.
double position_by_scale(Coordinates coordinates, const ResampleAxis& axis, float scale,
                         int64_t output_index) {
  const auto x = static_cast<float>(output_index);
  switch (coordinates) {
    case Coordinates::HalfPixelSymmetric: {
      // In float64, by distances from the centres: the centre has no rounding error that a tie
      // could show.
      const auto twice_distance = static_cast<double>(2 * output_index + 1 - axis.output);
      return (static_cast<double>(axis.input - 1) + twice_distance / scale) / 2;
    }
    case Coordinates::Asymmetric:
      return x / scale;
    case Coordinates::TfHalfPixelForNn:
      return (x + 0.5F) / scale;
    default:
      return (x + 0.5F) / scale - 0.5F;
  }
}

// Same as position_by_scale(), with each formula as one quotient of whole numbers. These are exact
// and the quotient is rounded once. So it is whole, or halfway, only if the exact position is, as
// long as the product of the sizes is below 2^51.
double position_by_sizes(Coordinates coordinates, const ResampleAxis& axis, double x) {
  const auto resized = static_cast<double>(axis.ratio.resized);
  const auto original = static_cast<double>(axis.ratio.original);
  const double centre = (2 * x + 1) * original;
  switch (coordinates) {
    case Coordinates::HalfPixelSymmetric: {
      const double lost =
          static_cast<double>(axis.input) * resized - static_cast<double>(axis.output) * original;
      return (lost + centre - resized) / (2 * resized);
    }
    case Coordinates::Asymmetric:
      return x * original / resized;
    case Coordinates::TfHalfPixelForNn:
      return centre / (2 * resized);
    default:
      return (centre - resized) / (2 * resized);
  }
}

// Computed in float32, too, in which products of numbers like 0.3F round to the position for 0.3.
float position_in_crop(const ResampleAxis& axis, int64_t output_index) {
  const auto last_input = static_cast<float>(axis.input - 1);
  const auto last_output = static_cast<float>(axis.output - 1);
  if (axis.output == 1) return 0.5F * (axis.roi_start + axis.roi_end) * last_input;
  return axis.roi_start * last_input + static_cast<float>(output_index) *
                                           (axis.roi_end - axis.roi_start) * last_input /
                                           last_output;
}

// The position in the input of output coordinate `output_index`.
double source_position(Coordinates coordinates, const ResampleAxis& axis, int64_t output_index) {
  const auto x = static_cast<double>(output_index);
  const double last_input = static_cast<double>(axis.input) - 1;
  const double last_output = static_cast<double>(axis.output) - 1;
  if (coordinates == Coordinates::AlignCorners) {
    return axis.output > 1 ? x * last_input / last_output : 0;
  }
  if (coordinates == Coordinates::TfCropAndResize) return position_in_crop(axis, output_index);
  if (coordinates == Coordinates::PytorchHalfPixel && axis.output == 1) return 0;
  if (!axis.given_scale) return position_by_sizes(coordinates, axis, x);
  return position_by_scale(coordinates, axis, *axis.given_scale, output_index);
}

bool is_extrapolated(const ResampleOptions& options, const ResampleAxis& axis, double position) {
  // Written so that NaN counts as outside.
  return options.coordinates == Coordinates::TfCropAndResize &&
         !(position >= 0 && position <= static_cast<double>(axis.input - 1));
}

// Clamps a position so that it fits an integer; two beyond the edge is equivalent to any further.
double bounded(const ResampleAxis& axis, double position) {
  if (std::isnan(position)) return 0;
  return std::clamp(position, -2.0, static_cast<double>(axis.input) + 1);
}

int64_t nearest(const ResampleOptions& options, const ResampleAxis& axis, double position) {
  const double down = std::floor(position);
  const double above = position - down;
  bool is_up = false;
  switch (options.rounding) {
    case Rounding::PreferFloor:
      is_up = above > 0.5;
      break;
    case Rounding::PreferCeil:
      is_up = above >= 0.5;
      break;
    case Rounding::Floor:
      break;
    case Rounding::Ceil:
      is_up = above > 0;
      break;
    case Rounding::Legacy:
      is_up = above > 0 && axis.scale() < 1;
      break;
  }
  const auto chosen = static_cast<int64_t>(down) + (is_up ? 1 : 0);
  return std::clamp<int64_t>(chosen, 0, axis.input - 1);
}

void resample_nearest(const KernelCall& call, const ResampleOptions& options,
                      std::span<const ResampleAxis> axes) {
  const MutableTensorView& output = call.outputs[0];
  SourceTables tables(&call.scratch);
  tables.reserve(axes.size());
  for (const ResampleAxis& axis : axes) {
    std::pmr::vector<int64_t>& table = tables.emplace_back();
    table.reserve(static_cast<size_t>(axis.output));
    for (int64_t output_index = 0; output_index < axis.output; ++output_index) {
      const double position = source_position(options.coordinates, axis, output_index);
      if (is_identity(options, axis)) {
        table.push_back(output_index);
      } else if (is_extrapolated(options, axis, position)) {
        table.push_back(-1);
      } else {
        table.push_back(nearest(options, axis, bounded(axis, position)));
      }
    }
  }
  uint64_t fill = 0;
  if (output.type == DataType::Bool) {
    fill = options.extrapolation_value != 0 ? 1 : 0;
  } else {
    visit_numeric(output.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T value = from_double<T>(double{options.extrapolation_value});
      std::memcpy(&fill, &value, sizeof value);
    });
  }
  copy_indexed(call, tables, &fill);
}

// The weight of an input element at distance `t` from the position, in units of the filter.
double filter_weight(const ResampleOptions& options, double t) {
  t = std::abs(t);
  if (options.interpolation == Interpolation::Linear) return std::max(0.0, 1 - t);
  // The cubic kernel of Keys, "Cubic convolution interpolation for digital image processing", 1981.
  const double a = options.cubic_coefficient;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// Resampling along one axis as a sparse matrix: each output is the weighted sum of its taps.
struct Taps {
  explicit Taps(std::pmr::memory_resource* memory)
      : sources(memory), weights(memory), is_outside(memory) {}

  int64_t count = 0;                  // taps per output coordinate
  std::pmr::vector<int64_t> sources;  // [output, count]
  std::pmr::vector<double> weights;   // [output, count]
  std::pmr::vector<bool> is_outside;  // per output coordinate: whether it is extrapolated
};

Taps taps_of(const ResampleOptions& options, const ResampleAxis& axis,
             std::pmr::memory_resource* memory) {
  const bool is_widened = options.is_antialiased && axis.scale() < 1;
  const double stretch = is_widened ? axis.scale() : 1.0;
  const int64_t reach = options.interpolation == Interpolation::Linear ? 1 : 2;
  const auto half = static_cast<int64_t>(std::ceil(static_cast<double>(reach) / stretch));
  Taps taps(memory);
  taps.count = 2 * half;
  for (int64_t output_index = 0; output_index < axis.output; ++output_index) {
    const double exact = source_position(options.coordinates, axis, output_index);
    const double position = bounded(axis, exact);
    const int64_t first = static_cast<int64_t>(std::floor(position)) - half + 1;
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const int64_t source = first + tap;
      const bool is_inside = source >= 0 && source < axis.input;
      double weight = filter_weight(options, (static_cast<double>(source) - position) * stretch);
      if (options.is_outside_excluded && !is_inside) weight = 0;
      sum += weight;
      taps.sources.push_back(std::clamp<int64_t>(source, 0, axis.input - 1));
      taps.weights.push_back(weight);
    }
    const auto begin = taps.weights.end() - taps.count;
    if ((is_widened || options.is_outside_excluded) && sum != 0) {
      std::for_each(begin, taps.weights.end(), [&](double& weight) { weight /= sum; });
    }
    taps.is_outside.push_back(is_extrapolated(options, axis, exact));
  }
  return taps;
}

// Resamples axis `which` of `source`, whose dimensions are `dims`; updates `dims`.
std::pmr::vector<double> resample_axis(const KernelCall& call, std::span<const double> source,
                                       std::span<int64_t> dims, size_t which, const Taps& taps,
                                       int64_t output_dim, double extrapolation) {
  const int64_t input_dim = dims[which];
  dims[which] = output_dim;
  const int64_t elements = element_count(dims);
  std::pmr::vector<double> target(static_cast<size_t>(elements), &call.scratch);
  int64_t inner = 1;
  for (size_t axis = which + 1; axis < dims.size(); ++axis) inner *= dims[axis];
  const double* from = source.data();
  double* to = target.data();
  const int64_t grain = std::max<int64_t>(1, 4096 / (inner * taps.count));
  call.pool.parallel_for(elements / inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t output_index = line % output_dim;
      const double* block = from + line / output_dim * input_dim * inner;
      double* out = to + line * inner;
      if (taps.is_outside[static_cast<size_t>(output_index)]) {
        std::fill(out, out + inner, extrapolation);
        continue;
      }
      std::fill(out, out + inner, 0.0);
      for (int64_t tap = output_index * taps.count; tap < (output_index + 1) * taps.count; ++tap) {
        const double weight = taps.weights[static_cast<size_t>(tap)];
        if (weight == 0) continue;
        const double* row = block + taps.sources[static_cast<size_t>(tap)] * inner;
        for (int64_t index = 0; index < inner; ++index) out[index] += weight * row[index];
      }
    }
  });
  return target;
}

void resample_linear(const KernelCall& call, const ResampleOptions& options,
                     std::span<const ResampleAxis> axes) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  std::pmr::vector<int64_t> dims(input.dims.begin(), input.dims.end(), &call.scratch);
  std::pmr::vector<double> values(static_cast<size_t>(input.elements), &call.scratch);
  visit_numeric(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(input.as<T>().begin(), input.as<T>().end(), values.begin(),
                   [](T value) { return static_cast<double>(static_cast<compute_t<T>>(value)); });
  });
  // Shrinks axes first, so that no intermediate is larger than both the input and the output.
  for (const bool is_shrinking : {true, false}) {
    for (size_t which = 0; which < axes.size(); ++which) {
      const ResampleAxis& axis = axes[which];
      if ((axis.output < axis.input) != is_shrinking || is_identity(options, axis)) continue;
      values = resample_axis(call, values, dims, which, taps_of(options, axis, &call.scratch),
                             axis.output, options.extrapolation_value);
    }
  }
  visit_numeric(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(values.begin(), values.end(), output.as<T>().begin(), from_double<T>);
  });
}

}  // namespace

void resample(const KernelCall& call, const ResampleOptions& options,
              std::span<const ResampleAxis> axes) {
  if (call.outputs[0].elements == 0) return;
  if (options.interpolation == Interpolation::Nearest) {
    resample_nearest(call, options, axes);
  } else {
    resample_linear(call, options, axes);
  }
}

Dim scaled_dim(const InferContext& context, const Dim& dim, float scale) {
  if (!(scale > 0) || std::isinf(scale)) {
    context.fail("expected scales greater than 0, found " + std::to_string(scale));
  }
  if (scale == 1) return dim;
  if (!dim.is_known()) {
    const bool is_small = scale < 0x1p30F;
    if (is_small && scale == std::floor(scale)) {
      return multiply(dim, static_cast<int64_t>(scale));
    }
    const float inverse = 1 / scale;
    // Only powers of two have an exact reciprocal.
    if (inverse < 0x1p30F && std::has_single_bit(static_cast<uint64_t>(inverse)) &&
        inverse == std::floor(inverse)) {
      return floor_divide(dim, static_cast<int64_t>(inverse));
    }
    return expression("scaled", {dim, int64_t{std::bit_cast<int32_t>(scale)}});
  }
  const float scaled = std::floor(static_cast<float>(dim.value()) * scale);
  if (!(scaled < 0x1p62F)) {
    context.fail("expected a dimension that fits 64 bits, found " + dim.text() + " scaled by " +
                 std::to_string(scale));
  }
  return static_cast<int64_t>(scaled);
}

}  // namespace tessera::ops
