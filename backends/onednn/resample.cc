// Resize and Upsample, if oneDNN computes every output from the same inputs as ONNX: its nearest
// and linear modes are those of "half_pixel". Whether the coordinates agree is found out by
// computing both, axis by axis.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/eltwise.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Node;
using plugin::ResizeAxis;
using plugin::ResizeCoordinates;
using plugin::ResizeRounding;
using plugin::Value;

namespace {

constexpr int32_t kFirstCoordinatesVersion = 11;
constexpr int32_t kFirstScalesVersion = 7;  // of Upsample

// The largest difference of positions that does not affect interpolated values.
constexpr float kPositionTolerance = 1e-5F;

struct Mode {
  bool is_linear = false;
  ResizeCoordinates coordinates = ResizeCoordinates::Asymmetric;
  ResizeRounding rounding = ResizeRounding::Legacy;
  // The names that the model uses.
  std::string coordinates_name = "asymmetric";
  std::string rounding_name = "legacy";
};

Mode mode_of(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  Mode mode;
  const std::string interpolation = attributes.get_string("mode", "nearest");
  if (interpolation == "cubic") refuse("interpolates linearly at most, not with cubics");
  mode.is_linear = interpolation == "linear" || interpolation == "bilinear";
  if (node.op() == "Upsample" || node.version() < kFirstCoordinatesVersion) return mode;
  mode.coordinates_name = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  mode.rounding_name = attributes.get_string("nearest_mode", "round_prefer_floor");
  mode.coordinates = plugin::resize_coordinates(mode.coordinates_name);
  mode.rounding = plugin::resize_rounding(mode.rounding_name);
  if (mode.coordinates == ResizeCoordinates::TfCropAndResize) {
    refuse("cannot crop while it resizes");
  }
  if (attributes.get_int("antialias") != 0) refuse("does not widen its filter (antialias)");
  if (mode.is_linear && attributes.get_int("exclude_outside") != 0) {
    refuse("repeats the pixels of the edge outside, as exclude_outside=0 does");
  }
  return mode;
}

// The position of the center of an output pixel, as defined by the documentation of oneDNN
// (Resampling).
float library_position(const ResizeAxis& axis, int64_t index) {
  return (static_cast<float>(index) + 0.5F) * static_cast<float>(axis.input) /
             static_cast<float>(axis.output) -
         0.5F;
}

bool agrees(const Mode& mode, const ResizeAxis& axis) {
  const auto edge = static_cast<double>(axis.input - 1);
  for (int64_t index = 0; index < axis.output; ++index) {
    const double wanted = plugin::source_position(mode.coordinates, axis, index);
    const float found = library_position(axis, index);
    if (mode.is_linear) {
      // Outside of the input, both take the pixel at the edge.
      const double difference =
          std::clamp(wanted, 0.0, edge) - std::clamp(double{found}, 0.0, edge);
      if (!(std::abs(difference) <= kPositionTolerance * std::max(1.0, edge))) return false;
      continue;
    }
    // Another order of operations could round a tie to the other side.
    const float rounded = std::round(found);
    const float distance = std::abs(std::abs(found - std::trunc(found)) - 0.5F);
    if (distance < kPositionTolerance * std::max(1.0F, std::abs(found))) return false;
    const auto nearest = std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, axis.input - 1);
    if (nearest != plugin::nearest_source(mode.rounding, axis, wanted)) return false;
  }
  return true;
}

// The scales that the node gives; empty if it gives sizes.
std::vector<float> scales_of(const Node& node) {
  std::vector<float> given = node.attributes().get_floats("scales");
  if (!given.empty()) return given;
  const bool is_second = node.op() == "Upsample" || node.version() < kFirstCoordinatesVersion;
  const Value scales = node.input(is_second ? 1 : 2);
  if (!scales.is_present() || scales.type().elements() == 0) return {};
  if (!scales.is_constant() || scales.constant() == nullptr) refuse("resizes by constants only");
  const std::span<const float> numbers = scales.constant_as<float>();
  return {numbers.begin(), numbers.end()};
}

std::vector<ResizeAxis> axes_of(const Node& node) {
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  std::vector<ResizeAxis> axes;
  for (size_t index = 0; index < input.size(); ++index) {
    axes.push_back({.input = input[index],
                    .output = output[index],
                    .resized = output[index],
                    .original = input[index]});
  }
  const std::vector<float> scales = scales_of(node);
  if (scales.empty() &&
      node.attributes().get_string("keep_aspect_ratio_policy", "stretch") != "stretch") {
    refuse("resizes each axis by its own factor (keep_aspect_ratio_policy)");
  }
  const std::vector<size_t> resized = plugin::resized_axes(node, axes.size());
  for (size_t index = 0; index < scales.size(); ++index) {
    axes[resized[index]].given_scale = scales[index];
  }
  return axes;
}

// [batch, channels] and up to three axes that are resized.
struct ResampledShape {
  std::vector<int64_t> input;
  std::vector<int64_t> output;
  bool is_own_shape = false;  // the sizes of the value, without merged axes
};

ResampledShape resampled_shape(const Mode& mode, const std::vector<ResizeAxis>& axes) {
  size_t first = axes.size();
  for (size_t index = axes.size(); index-- > 0;) {
    const bool is_kept = axes[index].input == axes[index].output && axes[index].scale() == 1;
    if (is_kept) continue;
    if (!agrees(mode, axes[index])) {
      refuse("would read other pixels than coordinate_transformation_mode '" +
             mode.coordinates_name + "'" +
             (mode.is_linear ? "" : " with '" + mode.rounding_name + "'") +
             " does, resizing from " + std::to_string(axes[index].input) + " to " +
             std::to_string(axes[index].output));
    }
    first = index;
  }
  ResampledShape shape;
  shape.is_own_shape = first >= 2 && axes.size() >= 3 && axes.size() <= 5;
  first = shape.is_own_shape ? 2 : std::min(first, axes.size() - 1);
  if (axes.size() - first > 3) refuse("resizes three axes at most");
  int64_t rows = 1;
  for (size_t index = 0; index < first; ++index) rows *= axes[index].input;
  shape.input = {1, rows};
  if (shape.is_own_shape) shape.input = {axes[0].input, axes[1].input};
  shape.output = shape.input;
  for (size_t index = first; index < axes.size(); ++index) {
    shape.input.push_back(axes[index].input);
    shape.output.push_back(axes[index].output);
  }
  return shape;
}

bool offer_format(Context& context, const Node& node, const Mode& mode, const ResampledShape& shape,
                  Format format) {
  const memory::desc from = describe(format, shape.input);
  const memory::desc to = describe(format, shape.output);
  const dnnl::resampling_forward::primitive_desc description(
      context.engine(), dnnl::prop_kind::forward_inference,
      mode.is_linear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest,
      from, to, context.attributes(), true);
  if (!description || (is_reference(description) && format != Format::RowMajor)) return false;
  PrimitiveOffer offer({node.id()}, description);
  offer.read_as(DNNL_ARG_SRC, node.input(0), from, layout_name(format, shape.input));
  offer.write_as(DNNL_ARG_DST, node.output(0), to, layout_name(format, shape.output));
  const auto bytes = static_cast<double>(from.get_size() + to.get_size());
  context.add(offer.candidate(context.optimistic_seconds(static_cast<double>(to.get_size()), bytes,
                                                         description.impl_info_str())));
  return true;
}

void offer_resize(Context& context, const Node& node) {
  for (const Value& value : {node.input(0), node.output(0)}) {
    if (const auto reason = explain_unusable(value)) refuse(*reason);
  }
  if (node.input(0).type().rank == 0) refuse("has no axes to resize");
  if (node.op() == "Upsample" && node.version() < kFirstScalesVersion) {
    refuse("takes a list of scales, not one attribute for each axis");
  }
  const Mode mode = mode_of(node);
  const ResampledShape shape = resampled_shape(mode, axes_of(node));
  bool is_offered = false;
  if (shape.is_own_shape) {
    for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
      is_offered = offer_format(context, node, mode, shape, format) || is_offered;
    }
  }
  is_offered = offer_format(context, node, mode, shape, Format::RowMajor) || is_offered;
  if (!is_offered) refuse("has no resampling of this shape");
}

}  // namespace

void propose_resamplings(Context& context) {
  context.for_each({"Resize", "Upsample"}, [&](const Node& node) { offer_resize(context, node); });
}

}  // namespace tessera::onednn
