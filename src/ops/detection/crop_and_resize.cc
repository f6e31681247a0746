// CropAndResize of domain com.microsoft: crops regions and resizes them to one size, as the op of
// that name of TensorFlow.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <vector>

#include "ops/convert_element.h"
#include "ops/detection/regions.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr size_t kCropSize = 3;

void infer_crop_and_resize(InferContext& context) {
  const std::string& mode = context.node().attributes.get_string("mode");
  if (mode != "bilinear" && mode != "nearest") {
    context.fail("expected mode 'bilinear' or 'nearest', found '" + mode + "'");
  }
  const std::optional<int64_t> length = list_length(context, kCropSize);
  if (length && *length != 2) {
    context.fail_input(kCropSize, "expected a height and a width, found " +
                                      std::to_string(*length) +
                                      (*length == 1 ? " number" : " numbers"));
  }
  const auto sizes = dim_list(context, kCropSize);
  if (!sizes) {
    return infer_regions(context, 4, unknown_dim(context, 0, 2), unknown_dim(context, 0, 3));
  }
  for (const Dim& size : *sizes) {
    if (size.is_known() && size.value() < 1) {
      context.fail_input(kCropSize, "expected sizes of at least 1, found " + text(*sizes));
    }
  }
  infer_regions(context, 4, (*sizes)[0], (*sizes)[1]);
}

// Where an output lies between two elements of one axis of the input.
struct CropPosition {
  int64_t low = -1;  // -1: outside
  int64_t high = -1;
  double above = 0;  // the distance from `low`
};

// Position number `index` of `count` between `low` and `high`, which are fractions of the axis.
// Real is the type in which other runtimes compute positions: those just outside of the input get
// the extrapolated value.
template <class Real>
CropPosition crop_position(Real low, Real high, int64_t index, int64_t count, int64_t length,
                           bool is_nearest) {
  const Real last = static_cast<Real>(length - 1);
  const Real step = count > 1 ? (high - low) * last / static_cast<Real>(count - 1) : Real(0);
  const Real position =
      count > 1 ? low * last + static_cast<Real>(index) * step : Real(0.5) * (low + high) * last;
  if (!(position >= 0 && position <= last)) return {};
  // `last` may be rounded up, if Real is float.
  const auto bounded = std::min(static_cast<double>(position), static_cast<double>(length - 1));
  if (is_nearest) {
    const auto nearest = static_cast<int64_t>(std::round(bounded));
    return {nearest, nearest, 0};
  }
  const auto whole = static_cast<int64_t>(bounded);
  return {whole, std::min(whole + 1, length - 1), bounded - static_cast<double>(whole)};
}

template <class T>
double interpolated(const T* plane, int64_t width, const CropPosition& row,
                    const CropPosition& column) {
  const auto along = [&](int64_t line) {
    const double low = to_double(plane[line * width + column.low]);
    const double high = to_double(plane[line * width + column.high]);
    return column.above == 0 ? low : low + (high - low) * column.above;
  };
  const double low = along(row.low);
  return row.above == 0 ? low : low + (along(row.high) - low) * row.above;
}

template <class T>
void crop_region(const KernelCall& call, const RegionSizes& sizes, int64_t region, int64_t channel,
                 std::span<const CropPosition> positions) {
  const int64_t image = checked_image(call, region, integer_at(call.inputs[2], region));
  const std::span<const CropPosition> columns =
      positions.subspan(static_cast<size_t>(sizes.output_height));
  const T outside = from_double<T>(call.node.attributes.get_float("extrapolation_value"));
  const T* plane =
      call.inputs[0].as<T>().data() + (image * sizes.channels + channel) * sizes.input_plane();
  T* target =
      call.outputs[0].as<T>().data() + (region * sizes.channels + channel) * sizes.output_plane();
  for (const CropPosition& row : positions.first(static_cast<size_t>(sizes.output_height))) {
    for (const CropPosition& column : columns) {
      const bool is_outside = row.low < 0 || column.low < 0;
      *target++ =
          is_outside ? outside : from_double<T>(interpolated(plane, sizes.width, row, column));
    }
  }
}

// The positions of the rows of a region, then those of its columns.
template <class T>
void find_positions(const KernelCall& call, const RegionSizes& sizes, int64_t region,
                    std::span<CropPosition> positions) {
  using Real = compute_t<T>;
  const T* box = call.inputs[1].as<T>().data() + region * 4;
  const bool is_nearest = call.node.attributes.get_string("mode") == "nearest";
  const auto number = [&](int64_t index) { return static_cast<Real>(box[index]); };
  for (int64_t row = 0; row < sizes.output_height; ++row) {
    positions[static_cast<size_t>(row)] =
        crop_position(number(0), number(2), row, sizes.output_height, sizes.height, is_nearest);
  }
  for (int64_t column = 0; column < sizes.output_width; ++column) {
    positions[static_cast<size_t>(sizes.output_height + column)] =
        crop_position(number(1), number(3), column, sizes.output_width, sizes.width, is_nearest);
  }
}

void run_crop_and_resize(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const RegionSizes sizes = region_sizes(call);
  const auto lines = static_cast<size_t>(sizes.output_height + sizes.output_width);
  std::pmr::vector<CropPosition> positions(static_cast<size_t>(sizes.regions) * lines,
                                           &call.scratch);
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto of_region = [&](int64_t region) {
      return std::span(positions).subspan(static_cast<size_t>(region) * lines, lines);
    };
    for (int64_t region = 0; region < sizes.regions; ++region) {
      find_positions<T>(call, sizes, region, of_region(region));
    }
    call.pool.parallel_for(sizes.regions * sizes.channels, 4, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t region = index / sizes.channels;
        crop_region<T>(call, sizes, region, index % sizes.channels, of_region(region));
      }
    });
  });
}

}  // namespace

std::vector<Op> crop_and_resize_ops() {
  return {{.name = "CropAndResize",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T1"}, {"rois", "T1"}, {"batch_indices", "T2"}, {"crop_size", "T2"}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", {DataType::Int32}}},
           .attributes = {{"extrapolation_value", AttributeKind::Float, 0.0F},
                          {"mode", AttributeKind::String, "bilinear"}},
           .infer = infer_crop_and_resize,
           .kernel = run_crop_and_resize}};
}

}  // namespace tessera::ops
