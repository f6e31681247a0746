// RoiAlign: average or maximum of interpolated samples in each bin of a region of interest, as in
// He et al., "Mask R-CNN", 2017.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/convert_element.h"
#include "ops/detection/regions.h"
#include "ops/index_reader.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kFirstHalfPixelVersion = 16;  // before, there is no shift by half a pixel
// Larger numbers are useless, and the number of samples grows with the square.
constexpr int64_t kMostSamples = 1024;

void infer_roi_align(InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const std::string& mode = attributes.get_string("mode");
  if (mode != "avg" && mode != "max") {
    context.fail("expected mode 'avg' or 'max', found '" + mode + "'");
  }
  if (context.version() >= kFirstHalfPixelVersion) {
    const std::string& shift = attributes.get_string("coordinate_transformation_mode");
    if (shift != "half_pixel" && shift != "output_half_pixel") {
      context.fail(
          "expected coordinate_transformation_mode 'half_pixel' or 'output_half_pixel', found '" +
          shift + "'");
    }
  }
  const int64_t samples = attributes.get_int("sampling_ratio");
  if (samples < 0) {
    context.fail("expected 'sampling_ratio' of at least 0, found " + std::to_string(samples));
  }
  if (samples > kMostSamples) {
    context.fail_unsupported("expected 'sampling_ratio' of at most " +
                             std::to_string(kMostSamples) + ", found " + std::to_string(samples));
  }
  infer_regions(context, 4, positive_attribute(context, "output_height"),
                positive_attribute(context, "output_width"));
}

struct Alignment {
  bool is_max = false;
  bool has_half_pixel = false;
  int64_t samples = 0;  // 0: as many as a bin has pixels
  float scale = 1;
};

Alignment alignment_of(const Node& node) {
  const std::string* shift = node.attributes.find_string("coordinate_transformation_mode");
  return {.is_max = node.attributes.get_string("mode") == "max",
          .has_half_pixel = shift != nullptr && *shift == "half_pixel",
          .samples = node.attributes.get_int("sampling_ratio"),
          .scale = node.attributes.get_float("spatial_scale")};
}

// One axis of a region, which is divided into bins. Real is float, or double for float64: numbers
// of samples are rounded up, and samples just outside of the input count as 0, so positions are
// computed in the type that other runtimes compute them in.
template <class Real>
struct RegionAxis {
  Real start = 0;
  Real bin = 0;         // the length of a bin
  int64_t samples = 0;  // of a bin
  int64_t length = 0;   // of the input
};

template <class Real>
RegionAxis<Real> region_axis(const Alignment& alignment, Real low, Real high, int64_t bins,
                             int64_t length) {
  const Real scale = alignment.scale;
  const Real shift = alignment.has_half_pixel ? Real(0.5) : Real(0);
  const Real start = low * scale - shift;
  Real extent = high * scale - shift - start;
  // Without the shift, as before version 16, each region has at least the size of a pixel.
  if (!alignment.has_half_pixel) extent = std::max(extent, Real(1));
  RegionAxis<Real> axis = {.start = start,
                           .bin = extent / static_cast<Real>(bins),
                           .samples = alignment.samples,
                           .length = length};
  if (axis.samples == 0) {
    axis.samples = from_double<int64_t>(std::ceil(std::min<double>(axis.bin, 0x1p52)));
    axis.samples = std::max<int64_t>(0, axis.samples);
  }
  return axis;
}

// Two neighbours in the input, between which a sample lies.
struct AxisSample {
  int64_t low = 0;
  int64_t high = 0;
  double low_weight = 0;
  double high_weight = 0;
};

// At most as many samples of a bin lie inside the input. If their number is that of pixels, they
// are at least half a pixel apart, if there are several.
int64_t most_inside(const Alignment& alignment, int64_t length) {
  return alignment.samples > 0 ? alignment.samples : 2 * length + 8;
}

struct SampleRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The samples of a bin from `start` on that may lie in the input: all, unless there are many.
template <class Real>
SampleRange samples_near_input(const RegionAxis<Real>& axis, Real start) {
  if (axis.samples <= kMostSamples) return {0, axis.samples};
  const double step = static_cast<double>(axis.bin) / static_cast<double>(axis.samples);
  const double first = (-1 - static_cast<double>(start)) / step - 2;
  const double last = (static_cast<double>(axis.length) - static_cast<double>(start)) / step + 2;
  const auto count = static_cast<double>(axis.samples);
  if (!(last >= 0 && first < count)) return {0, 0};
  return {static_cast<int64_t>(std::max(0.0, first)), static_cast<int64_t>(std::min(count, last))};
}

// Writes the samples of bin number `bin` that lie inside the input; returns their number, at most
// the size of `target`.
template <class Real>
int64_t find_samples(const RegionAxis<Real>& axis, int64_t bin, std::span<AxisSample> target) {
  if (axis.length == 0) return 0;
  const Real start = axis.start + static_cast<Real>(bin) * axis.bin;
  const SampleRange range = samples_near_input(axis, start);
  const auto most = static_cast<int64_t>(target.size());
  int64_t count = 0;
  for (int64_t sample = range.begin; sample < range.end && count < most; ++sample) {
    const Real middle = static_cast<Real>(sample) + Real(0.5);
    const Real position = start + middle * axis.bin / static_cast<Real>(axis.samples);
    if (!(position >= -1 && position <= static_cast<Real>(axis.length))) continue;
    const double inside = std::clamp<double>(position, 0, static_cast<double>(axis.length - 1));
    const auto low = static_cast<int64_t>(inside);
    const double above = inside - static_cast<double>(low);
    target[static_cast<size_t>(count++)] = {low, std::min(low + 1, axis.length - 1), 1 - above,
                                            above};
  }
  return count;
}

// The samples of one bin, and their number with those outside of the input, which are 0.
struct BinSamples {
  std::span<const AxisSample> rows;
  std::span<const AxisSample> columns;
  double count = 0;
};

template <class T>
double sampled_average(const T* plane, int64_t width, const BinSamples& samples) {
  double sum = 0;
  for (const AxisSample& row : samples.rows) {
    const T* low = plane + row.low * width;
    const T* high = plane + row.high * width;
    for (const AxisSample& column : samples.columns) {
      sum += row.low_weight * (column.low_weight * to_double(low[column.low]) +
                               column.high_weight * to_double(low[column.high])) +
             row.high_weight * (column.low_weight * to_double(high[column.low]) +
                                column.high_weight * to_double(high[column.high]));
    }
  }
  return sum / std::max(1.0, samples.count);
}

// The largest weighted neighbour of any sample, as in onnx.reference and ONNX's examples, and not
// the largest interpolated sample. NaN wins.
template <class T>
double sampled_maximum(const T* plane, int64_t width, const BinSamples& samples) {
  const size_t inside = samples.rows.size() * samples.columns.size();
  if (inside == 0) return 0;
  const bool are_all_inside = static_cast<double>(inside) == samples.count;
  double largest = are_all_inside ? -std::numeric_limits<double>::infinity() : 0;
  // Without a branch. Of two NaNs, the first one stays.
  const auto add = [&](double value) {
    const bool is_kept = value <= largest || std::isnan(largest);
    largest = is_kept ? largest : value;
  };
  for (const AxisSample& row : samples.rows) {
    const T* low = plane + row.low * width;
    const T* high = plane + row.high * width;
    for (const AxisSample& column : samples.columns) {
      add(row.low_weight * column.low_weight * to_double(low[column.low]));
      add(row.low_weight * column.high_weight * to_double(low[column.high]));
      add(row.high_weight * column.low_weight * to_double(high[column.low]));
      add(row.high_weight * column.high_weight * to_double(high[column.high]));
    }
  }
  return largest;
}

// Computes one row of bins of one region, for all channels.
template <class T>
void align_row(const KernelCall& call, const Alignment& alignment, const RegionSizes& sizes,
               int64_t region, int64_t row, std::span<AxisSample> memory) {
  using Real = compute_t<T>;
  const T* box = call.inputs[1].as<T>().data() + region * 4;
  const auto vertical =
      region_axis<Real>(alignment, static_cast<Real>(box[1]), static_cast<Real>(box[3]),
                        sizes.output_height, sizes.height);
  const auto horizontal =
      region_axis<Real>(alignment, static_cast<Real>(box[0]), static_cast<Real>(box[2]),
                        sizes.output_width, sizes.width);
  const int64_t image = checked_image(call, region, integer_at(call.inputs[2], region));
  const T* source = call.inputs[0].as<T>().data() + image * sizes.channels * sizes.input_plane();
  T* target = call.outputs[0].as<T>().data() + region * sizes.channels * sizes.output_plane() +
              row * sizes.output_width;
  const auto most_rows = static_cast<size_t>(most_inside(alignment, sizes.height));
  const std::span<AxisSample> rows = memory.first(most_rows);
  const std::span<AxisSample> columns = memory.subspan(most_rows);
  BinSamples samples;
  samples.count = static_cast<double>(vertical.samples) * static_cast<double>(horizontal.samples);
  samples.rows = rows.first(static_cast<size_t>(find_samples(vertical, row, rows)));
  for (int64_t column = 0; column < sizes.output_width; ++column) {
    samples.columns = columns.first(static_cast<size_t>(find_samples(horizontal, column, columns)));
    for (int64_t channel = 0; channel < sizes.channels; ++channel) {
      const T* plane = source + channel * sizes.input_plane();
      const double value = alignment.is_max ? sampled_maximum(plane, sizes.width, samples)
                                            : sampled_average(plane, sizes.width, samples);
      target[channel * sizes.output_plane() + column] = from_double<T>(value);
    }
  }
}

void run_roi_align(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Alignment alignment = alignment_of(call.node);
  const RegionSizes sizes = region_sizes(call);
  const int64_t rows = sizes.regions * sizes.output_height;
  const int64_t most = most_inside(alignment, sizes.height) + most_inside(alignment, sizes.width);
  std::pmr::vector<AxisSample> memory(static_cast<size_t>(slot_count(call.pool, rows, 1) * most),
                                      &call.scratch);
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for_in_slots(call.pool, rows, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      const std::span<AxisSample> own =
          std::span(memory).subspan(static_cast<size_t>(slot * most), static_cast<size_t>(most));
      for (int64_t row = begin; row < end; ++row) {
        align_row<T>(call, alignment, sizes, row / sizes.output_height, row % sizes.output_height,
                     own);
      }
    });
  });
}

// At least one sample of four neighbours for each output.
int64_t roi_align_flops(const Node& node, std::span<const Type>, std::span<const Type> outputs) {
  const int64_t samples = std::max<int64_t>(1, node.attributes.get_int("sampling_ratio"));
  Dim work = multiply(8, multiply(samples, samples));
  for (const Dim& dim : *outputs[0].shape) work = multiply(work, dim);
  return work.value();
}

}  // namespace

std::vector<Op> roi_align_ops() {
  return {{.name = "RoiAlign",
           .versions = {10, kFirstHalfPixelVersion, 22},
           .inputs = {{"X", "T1"}, {"rois", "T1"}, {"batch_indices", "T2"}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}},
           .attributes = {{"coordinate_transformation_mode", AttributeKind::String, "half_pixel",
                           kFirstHalfPixelVersion},
                          {"mode", AttributeKind::String, "avg"},
                          {"output_height", AttributeKind::Int, int64_t{1}},
                          {"output_width", AttributeKind::Int, int64_t{1}},
                          {"sampling_ratio", AttributeKind::Int, int64_t{0}},
                          {"spatial_scale", AttributeKind::Float, 1.0F}},
           .infer = infer_roi_align,
           .flops = roi_align_flops,
           .kernel = run_roi_align}};
}

}  // namespace tessera::ops
