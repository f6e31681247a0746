// Resize and Upsample: to the nearest element of any type, linear and cubic in float32; in each
// layout with whole blocks of channels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"
#include "layout/strided_layout.h"
#include "resize/resample.h"
#include "resize/separable.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::ResizeAxis;
using plugin::ResizeCoordinates;
using plugin::RunContext;
using plugin::Value;

namespace {

constexpr int32_t kFirstFullVersion = 11;
constexpr int32_t kFirstAxesVersion = 18;
constexpr size_t kRoi = 1;
constexpr size_t kSizes = 3;

Interpolation interpolation_of(const Node& node) {
  const std::string mode = node.attributes().get_string("mode", "nearest");
  if (mode == "nearest") return Interpolation::Nearest;
  if (mode == "linear" || mode == "bilinear") return Interpolation::Linear;
  if (mode == "cubic") return Interpolation::Cubic;
  throw plugin::Failure(TESSERA_UNSUPPORTED, "does not know '" + mode + "'");
}

// How a node resizes, and each of its axes.
struct Resampling {
  ResampleOptions options;
  std::vector<ResizeAxis> axes;
};

// The elements of a float32 constant; throws if it is not known.
std::vector<float> known_floats(const Value& value, const char* name) {
  if (!value.is_constant() || value.constant() == nullptr ||
      value.type().data_type != TESSERA_FLOAT32) {
    throw plugin::Failure(TESSERA_UNSUPPORTED,
                          std::string("takes ") + name + " as float32 constants only");
  }
  const auto elements = value.constant_as<float>();
  return {elements.begin(), elements.end()};
}

std::vector<float> upsample_scales(const Node& node) {
  if (node.version() >= 9) return known_floats(node.input(1), "scales");
  if (node.version() >= 7) return node.attributes().get_floats("scales");
  return {1, 1, node.attributes().get_float("height_scale"),
          node.attributes().get_float("width_scale")};
}

ResampleOptions resize_options(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  ResampleOptions options;
  options.interpolation = interpolation_of(node);
  if (node.version() < kFirstFullVersion) {
    options.rounding = plugin::ResizeRounding::Legacy;
    return options;
  }
  options.coordinates = plugin::resize_coordinates(
      attributes.get_string("coordinate_transformation_mode", "half_pixel"));
  options.rounding =
      plugin::resize_rounding(attributes.get_string("nearest_mode", "round_prefer_floor"));
  options.cubic_coefficient = attributes.get_float("cubic_coeff_a", -0.75F);
  options.is_outside_excluded = attributes.get_int("exclude_outside") != 0;
  options.extrapolation_value = attributes.get_float("extrapolation_value");
  options.is_antialiased =
      node.version() >= kFirstAxesVersion && attributes.get_int("antialias") != 0;
  return options;
}

// Sets the scales of axes that are resized to sizes: a common one, if the aspect ratio is kept.
void set_ratios(const Node& node, const std::vector<size_t>& which, std::vector<ResizeAxis>& axes) {
  for (const size_t index : which) {
    axes[index].resized = axes[index].output;
    axes[index].original = axes[index].input;
  }
  const std::string policy = node.attributes().get_string("keep_aspect_ratio_policy", "stretch");
  if (node.version() < kFirstAxesVersion || which.empty() || policy == "stretch") return;
  const auto sizes = plugin::constant_integers(node.input(kSizes));
  if (!sizes) throw plugin::Failure(TESSERA_UNSUPPORTED, "takes sizes as constants only");
  for (size_t index = 0; index < which.size(); ++index) {
    axes[which[index]].resized = (*sizes)[index];
  }
  const auto is_smaller = [&](size_t left, size_t right) {
    return axes[left].scale() < axes[right].scale();
  };
  const ResizeAxis chosen =
      axes[policy == "not_larger" ? *std::min_element(which.begin(), which.end(), is_smaller)
                                  : *std::max_element(which.begin(), which.end(), is_smaller)];
  for (const size_t index : which) {
    axes[index].resized = chosen.resized;
    axes[index].original = chosen.original;
  }
}

void read_crop(const Node& node, const std::vector<size_t>& which, std::vector<ResizeAxis>& axes) {
  const std::vector<float> roi = known_floats(node.input(kRoi), "roi");
  for (size_t index = 0; index < which.size(); ++index) {
    axes[which[index]].crop_start = roi[index];
    axes[which[index]].crop_end = roi[which.size() + index];
  }
}

Resampling resampling_of(const Node& node) {
  Resampling result;
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  for (size_t axis = 0; axis < from.size(); ++axis) result.axes.push_back({from[axis], to[axis]});
  if (node.op() == "Upsample") {
    result.options.interpolation = interpolation_of(node);
    const std::vector<float> scales = upsample_scales(node);
    for (size_t axis = 0; axis < from.size(); ++axis) result.axes[axis].given_scale = scales[axis];
    return result;
  }
  result.options = resize_options(node);
  const std::vector<size_t> which = plugin::resized_axes(node, from.size());
  const Value scales = node.input(node.version() < kFirstFullVersion ? 1 : 2);
  const bool has_scales = scales.is_present() && scales.type().elements() > 0;
  if (has_scales) {
    const std::vector<float> given = known_floats(scales, "scales");
    for (size_t index = 0; index < which.size(); ++index) {
      result.axes[which[index]].given_scale = given[index];
    }
  } else {
    set_ratios(node, which, result.axes);
  }
  if (result.options.coordinates == ResizeCoordinates::TfCropAndResize) {
    read_crop(node, which, result.axes);
  }
  return result;
}

plugin::Candidate candidate_in(ProposeContext& context, const Node& node,
                               const std::string& layout) {
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.inputs = {{.value = node.input(0).id(), .layout = layout}};
  candidate.outputs = {{.value = node.output(0).id(), .layout = layout}};
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  return candidate;
}

void offer_nearest(ProposeContext& context, const Node& node, const Resampling& resampling,
                   const std::string& layout) {
  const plugin::Type type = node.input(0).type();
  std::vector<SourceTable> tables;
  for (const ResizeAxis& axis : resampling.axes) {
    tables.push_back(node.output(0).type().elements() == 0
                         ? SourceTable()
                         : nearest_table(resampling.options, axis));
  }
  plugin::Candidate candidate = candidate_in(context, node, layout);
  candidate.algorithm = "nearest";
  candidate.build = [storage = storage_tables(layout, type.dims, tables),
                     bytes = plugin::element_bytes(type.data_type),
                     fill = resampling.options.extrapolation_value](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [copy = TableCopy(storage.tables, storage.strides, bytes), fill](
            RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          // Only float32 is ever extrapolated; the other types ignore the eight bytes.
          std::array<float, 2> element = {fill, 0};
          copy.run(run, inputs[0].data, outputs[0].data, element.data());
        });
  };
  context.add(std::move(candidate));
}

// The axes in the order of memory; the lanes of a block are an axis of their own.
std::vector<ResizeAxis> axes_in_memory(const std::string& layout, const plugin::Type& type,
                                       std::vector<ResizeAxis> axes) {
  const StridedLayout source = strided_layout(layout, type.dims);
  if (source.block > 1) {
    axes[1].input = axes[1].output = source.dims[1];
    axes.push_back({source.block, source.block});
  }
  if (layout == "nhwc") std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

void offer_separable(ProposeContext& context, const Node& node, const Resampling& resampling,
                     const std::string& layout) {
  const ResampleOptions& options = resampling.options;
  std::vector<ResizeAxis> axes = axes_in_memory(layout, node.input(0).type(), resampling.axes);
  int64_t planes = 1;
  size_t leading = 0;
  while (leading < axes.size() && is_unchanged(options, axes[leading])) {
    planes *= axes[leading++].input;
  }
  axes.erase(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(leading));
  int64_t input = 1;
  int64_t output = 1;
  for (const ResizeAxis& axis : axes) {
    input *= axis.input;
    output *= axis.output;
  }
  plugin::Candidate candidate = candidate_in(context, node, layout);
  candidate.algorithm = "separable";
  if (planes * output == 0) {
    candidate.build = [](const plugin::BuildOptions&) {
      return plugin::make_kernel(
          [](RunContext&, std::span<const Buffer>, std::span<const Buffer>) {});
    };
    return context.add(std::move(candidate));
  }
  const SeparableKernel kernel(resample_passes(options, axes), planes, input, output,
                               context.options().threads);
  candidate.workspace_bytes = kernel.workspace_bytes();
  candidate.build = [kernel](const plugin::BuildOptions&) {
    return std::make_unique<SeparableKernel>(kernel);
  };
  context.add(std::move(candidate));
}

void offer_resize(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const Resampling resampling = resampling_of(node);
  const bool is_nearest = resampling.options.interpolation == Interpolation::Nearest;
  const bool is_cropped = resampling.options.coordinates == ResizeCoordinates::TfCropAndResize;
  if (type.data_type != TESSERA_FLOAT32 && (!is_nearest || is_cropped)) {
    return context.refuse(node.id(), "interpolates and extrapolates float32 only");
  }
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(type)) break;
    const bool has_blocks = strided_layout(layout, type.dims).block > 1;
    if (has_blocks && !is_unchanged(resampling.options, resampling.axes[1])) continue;
    if (is_nearest) {
      offer_nearest(context, node, resampling, layout);
    } else {
      offer_separable(context, node, resampling, layout);
    }
  }
}

}  // namespace

void propose_resizes(ProposeContext& context) {
  context.for_each({"Resize", "Upsample"}, [&](const Node& node) { offer_resize(context, node); });
}

}  // namespace tessera::native
