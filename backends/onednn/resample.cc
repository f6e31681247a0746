// Resize and Upsample, where oneDNN takes every output pixel from the same places: its nearest and
// linear are those of pixels that are squares ("half_pixel"). Whether ONNX's coordinates agree is
// found out by computing both, axis by axis.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "context.h"
#include "eltwise.h"
#include "families.h"
#include "formats.h"
#include "implementation.h"
#include "primitive.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

constexpr int32_t kFirstCoordinatesVersion = 11;
constexpr int32_t kFirstScalesVersion = 7;  // of Upsample

// How far positions may differ before an interpolated value does.
constexpr float kPositionTolerance = 1e-5F;

struct Axis {
  int64_t input = 1;
  int64_t output = 1;
  float scale = 1;  // as the model gives it
};

struct Mode {
  bool is_linear = false;
  std::string coordinates;
  std::string rounding;
};

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

Mode mode_of(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  Mode mode;
  const std::string interpolation = attributes.get_string("mode", "nearest");
  if (interpolation == "cubic") refuse("interpolates linearly at most, not with cubics");
  mode.is_linear = interpolation == "linear" || interpolation == "bilinear";
  if (node.op() == "Upsample" || node.version() < kFirstCoordinatesVersion) {
    mode.coordinates = "asymmetric";
    mode.rounding = "legacy";
    return mode;
  }
  mode.coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  mode.rounding = attributes.get_string("nearest_mode", "round_prefer_floor");
  if (mode.coordinates == "tf_crop_and_resize") refuse("cannot crop while it resizes");
  if (attributes.get_int("antialias") != 0) refuse("does not widen its filter (antialias)");
  if (mode.is_linear && attributes.get_int("exclude_outside") != 0) {
    refuse("repeats the pixels of the edge outside, as exclude_outside=0 does");
  }
  return mode;
}

// Operators.md of ONNX, Resize.
float onnx_position(const Mode& mode, const Axis& axis, int64_t place) {
  const auto x = static_cast<float>(place);
  const auto input = static_cast<float>(axis.input);
  const auto output = static_cast<float>(axis.output);
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5F) / axis.scale;
  if (mode.coordinates == "align_corners") {
    return axis.output > 1 ? x * (input - 1) / (output - 1) : 0;
  }
  const float half_pixel = (x + 0.5F) / axis.scale - 0.5F;
  if (mode.coordinates == "pytorch_half_pixel") return axis.output > 1 ? half_pixel : 0;
  if (mode.coordinates == "half_pixel_symmetric") {
    return input / 2 * (1 - output / (axis.scale * input)) + half_pixel;
  }
  return half_pixel;
}

int64_t onnx_nearest(const Mode& mode, const Axis& axis, float position) {
  const float down = std::floor(position);
  float chosen = down;
  if (mode.rounding == "round_prefer_floor") {
    chosen = position == down + 0.5F ? down : std::round(position);
  } else if (mode.rounding == "round_prefer_ceil") {
    chosen = std::floor(position + 0.5F);
  } else if (mode.rounding == "ceil" || (mode.rounding == "legacy" && axis.scale < 1)) {
    chosen = std::ceil(position);
  }
  return std::clamp<int64_t>(static_cast<int64_t>(chosen), 0, axis.input - 1);
}

// oneDNN's documentation, Resampling: where the middle of an output pixel lies.
float library_position(const Axis& axis, int64_t place) {
  return (static_cast<float>(place) + 0.5F) * static_cast<float>(axis.input) /
             static_cast<float>(axis.output) -
         0.5F;
}

bool agrees(const Mode& mode, const Axis& axis) {
  const auto edge = static_cast<float>(axis.input - 1);
  for (int64_t place = 0; place < axis.output; ++place) {
    const float wanted = onnx_position(mode, axis, place);
    const float found = library_position(axis, place);
    if (mode.is_linear) {
      // Beyond the edges both take the pixel at the edge.
      const float difference = std::clamp(wanted, 0.0F, edge) - std::clamp(found, 0.0F, edge);
      if (!(std::abs(difference) <= kPositionTolerance * std::max(1.0F, edge))) return false;
      continue;
    }
    // A tie could fall to either side in another order of operations.
    const float rounded = std::round(found);
    if (std::abs(std::abs(found - std::trunc(found)) - 0.5F) < kPositionTolerance) return false;
    const auto nearest = std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, axis.input - 1);
    if (nearest != onnx_nearest(mode, axis, wanted)) return false;
  }
  return true;
}

// The scale of each axis that the node gives; nothing where it gives sizes.
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

std::vector<Axis> axes_of(const Node& node) {
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  std::vector<Axis> axes;
  for (size_t index = 0; index < input.size(); ++index) {
    axes.push_back({input[index], output[index],
                    static_cast<float>(output[index]) / static_cast<float>(input[index])});
  }
  const std::vector<float> scales = scales_of(node);
  if (scales.empty() &&
      node.attributes().get_string("keep_aspect_ratio_policy", "stretch") != "stretch") {
    refuse("resizes each axis by its own factor (keep_aspect_ratio_policy)");
  }
  std::vector<int64_t> named = node.attributes().get_ints("axes");
  for (int64_t axis = 0; named.size() < scales.size(); ++axis) named.push_back(axis);
  for (size_t index = 0; index < scales.size(); ++index) {
    const int64_t axis =
        named[index] < 0 ? named[index] + static_cast<int64_t>(axes.size()) : named[index];
    axes[static_cast<size_t>(axis)].scale = scales[index];
  }
  return axes;
}

// [batch, channels] and up to three axes that are resized.
struct Picture {
  std::vector<int64_t> input;
  std::vector<int64_t> output;
  bool is_own_shape = false;  // of the value, not one with joined axes
};

Picture picture_of(const Mode& mode, const std::vector<Axis>& axes) {
  size_t first = axes.size();
  for (size_t index = axes.size(); index-- > 0;) {
    const bool is_kept = axes[index].input == axes[index].output && axes[index].scale == 1;
    if (is_kept) continue;
    if (!agrees(mode, axes[index])) {
      refuse("would read other pixels than coordinate_transformation_mode '" + mode.coordinates +
             "'" + (mode.is_linear ? "" : " with '" + mode.rounding + "'") +
             " does, resizing from " + std::to_string(axes[index].input) + " to " +
             std::to_string(axes[index].output));
    }
    first = index;
  }
  Picture picture;
  picture.is_own_shape = first >= 2 && axes.size() >= 3 && axes.size() <= 5;
  first = picture.is_own_shape ? 2 : std::min(first, axes.size() - 1);
  if (axes.size() - first > 3) refuse("resizes three axes at most");
  int64_t rows = 1;
  for (size_t index = 0; index < first; ++index) rows *= axes[index].input;
  picture.input = {1, rows};
  if (picture.is_own_shape) picture.input = {axes[0].input, axes[1].input};
  picture.output = picture.input;
  for (size_t index = first; index < axes.size(); ++index) {
    picture.input.push_back(axes[index].input);
    picture.output.push_back(axes[index].output);
  }
  return picture;
}

bool offer_format(Context& context, const Node& node, const Mode& mode, const Picture& picture,
                  Format format) {
  const memory::desc from = describe(format, picture.input);
  const memory::desc to = describe(format, picture.output);
  const dnnl::resampling_forward::primitive_desc description(
      context.engine(), dnnl::prop_kind::forward_inference,
      mode.is_linear ? dnnl::algorithm::resampling_linear : dnnl::algorithm::resampling_nearest,
      from, to, context.attributes(), true);
  if (!description || (is_reference(description) && format != Format::RowMajor)) return false;
  PrimitiveOffer offer({node.id()}, description);
  offer.read_as(DNNL_ARG_SRC, node.input(0), from, layout_name(format, picture.input));
  offer.write_as(DNNL_ARG_DST, node.output(0), to, layout_name(format, picture.output));
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
  const Picture picture = picture_of(mode, axes_of(node));
  bool is_offered = false;
  if (picture.is_own_shape) {
    for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
      is_offered = offer_format(context, node, mode, picture, format) || is_offered;
    }
  }
  is_offered = offer_format(context, node, mode, picture, Format::RowMajor) || is_offered;
  if (!is_offered) refuse("has no resampling of this shape");
}

}  // namespace

void propose_resamplings(Context& context) {
  context.for_each({"Resize", "Upsample"}, [&](const Node& node) { offer_resize(context, node); });
}

}  // namespace tessera::onednn
