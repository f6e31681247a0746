// Decodes the attributes and constant inputs of ONNX's operators, once for all plug-ins: axes
// counted from the front, slices clamped to their axis, windows with their padding, the coordinates
// of Resize, the bounds of Clip, the strides of operands that broadcast. This part of the contract
// is optional: a plug-in includes it in addition to tessera/backend.h if it wants it.
//
// backends/reference and src/ops do not include this header. The results of plug-ins are compared
// with theirs, so they have implementations of their own: the comparison could not find a mistake
// in shared code.
//
// The functions rely on the host, which has checked the node against its operator's type rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/backend_graph.h"

namespace tessera::plugin {

// --- Constants ----------------------------------------------------------------------------------

// The value of a constant with one element; nullopt if `value` is not such a constant, or if its
// type is not float32, float64, int32 or int64.
inline std::optional<double> constant_number(const Value& value) {
  if (!value.is_constant() || value.constant() == nullptr || !value.type().is_known() ||
      value.type().elements() != 1) {
    return std::nullopt;
  }
  switch (value.type().data_type) {
    case TESSERA_FLOAT32:
      return value.constant_as<float>()[0];
    case TESSERA_FLOAT64:
      return value.constant_as<double>()[0];
    case TESSERA_INT32:
      return value.constant_as<int32_t>()[0];
    case TESSERA_INT64:
      return static_cast<double>(value.constant_as<int64_t>()[0]);
    default:
      return std::nullopt;
  }
}

// The elements of a constant of type int32 or int64; nullopt for any other value.
inline std::optional<std::vector<int64_t>> constant_integers(const Value& value) {
  if (!value.is_constant()) return std::nullopt;
  if (value.type().elements() == 0) return std::vector<int64_t>();
  if (value.constant() == nullptr) return std::nullopt;
  const int32_t type = value.type().data_type;
  if (type == TESSERA_INT64) {
    const std::span<const int64_t> elements = value.constant_as<int64_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  if (type == TESSERA_INT32) {
    const std::span<const int32_t> elements = value.constant_as<int32_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  return std::nullopt;
}

// --- Axes ---------------------------------------------------------------------------------------

// Returns `axis` counted from the front; a negative `axis` counts from the back. nullopt if it is
// outside [-rank, rank).
inline std::optional<size_t> find_axis(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

// Same as find_axis(), but throws Failure (TESSERA_UNSUPPORTED) if there is no such axis.
inline size_t normalized_axis(int64_t axis, size_t rank) {
  const std::optional<size_t> found = find_axis(axis, rank);
  if (!found) {
    throw Failure(TESSERA_UNSUPPORTED, "takes axes of " + std::to_string(rank) +
                                           " dimensions only, found " + std::to_string(axis));
  }
  return *found;
}

// For each of the `rank` axes, whether a node of the Reduce family reduces it. The axes are an
// attribute or an input; without any, all are reduced, or none if noop_with_empty_axes says so.
// Throws Failure (TESSERA_UNSUPPORTED) if the axes are not known before running.
inline std::vector<bool> reduced_axes(const Node& node, size_t rank) {
  std::vector<int64_t> axes = node.attributes().get_ints("axes");
  const Value given = node.input(1);
  if (given.is_present() && !(given.type().is_known() && given.type().elements() == 0)) {
    if (!given.is_constant() || given.constant() == nullptr) {
      throw Failure(TESSERA_UNSUPPORTED, "reduces constant axes only");
    }
    const std::span<const int64_t> elements = given.constant_as<int64_t>();
    axes.assign(elements.begin(), elements.end());
  }
  const bool is_all = axes.empty() && node.attributes().get_int("noop_with_empty_axes") == 0;
  std::vector<bool> is_reduced(rank, is_all);
  for (const int64_t axis : axes) is_reduced[normalized_axis(axis, rank)] = true;
  return is_reduced;
}

// The axis of the input for each axis of the output of a Transpose: attribute perm, or all axes in
// reverse order.
inline std::vector<int64_t> transpose_order(const Node& node) {
  std::vector<int64_t> order = node.attributes().get_ints("perm");
  if (!order.empty()) return order;
  for (int64_t axis = node.input(0).type().rank; axis-- > 0;) order.push_back(axis);
  return order;
}

// --- Slice --------------------------------------------------------------------------------------

// Returns `index` counted from the front and clamped to [0, size]; a negative `index` counts from
// the back.
inline int64_t clamped_index(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}

// The lists of a Slice: attributes up to version 9, inputs since then. `axes` and `steps` have the
// length of `starts`; axes are those of the model and may be negative.
struct SliceLists {
  std::vector<int64_t> starts;
  std::optional<std::vector<int64_t>> ends;  // nullopt: not known before running
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

// nullopt if starts, axes or steps are not known before running.
inline std::optional<SliceLists> slice_lists(const Node& node) {
  constexpr int32_t kFirstInputVersion = 10;
  std::optional<std::vector<int64_t>> starts;
  std::optional<std::vector<int64_t>> ends;
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>();
  std::optional<std::vector<int64_t>> steps = std::vector<int64_t>();
  if (node.version() < kFirstInputVersion) {
    starts = node.attributes().get_ints("starts");
    ends = node.attributes().get_ints("ends");
    axes = node.attributes().get_ints("axes");
  } else {
    starts = constant_integers(node.input(1));
    ends = constant_integers(node.input(2));
    if (node.input(3).is_present()) axes = constant_integers(node.input(3));
    if (node.input(4).is_present()) steps = constant_integers(node.input(4));
  }
  if (!starts || !axes || !steps) return std::nullopt;
  SliceLists lists = {*std::move(starts), std::move(ends), *std::move(axes), *std::move(steps)};
  if (lists.axes.empty()) {
    for (size_t axis = 0; axis < lists.starts.size(); ++axis) {
      lists.axes.push_back(static_cast<int64_t>(axis));
    }
  }
  if (lists.steps.empty()) lists.steps.assign(lists.starts.size(), 1);
  const bool is_whole =
      lists.axes.size() == lists.starts.size() && lists.steps.size() == lists.starts.size();
  return is_whole ? std::optional(std::move(lists)) : std::nullopt;
}

// The elements start, start + step, ... of one axis.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;  // 1 if fewer than two elements are selected
  int64_t count = 0;
};

// The elements of an axis with `size` elements that a Slice selects; `step` must not be 0.
inline SliceRange slice_range(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (size == 0) return {};
  // -INT64_MIN is not an int64. Either step selects one element at most.
  step = std::max(step, -std::numeric_limits<int64_t>::max());
  if (step > 0) {
    start = clamped_index(start, size);
    end = clamped_index(end, size);
    const int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
    return {count == 0 ? 0 : start, count > 1 ? step : 1, count};
  }
  // With a negative step a slice begins at the last element at most, and may end before the first
  // one.
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size - 1);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, -1, size - 1);
  const int64_t count = start > end ? (start - end - 1) / -step + 1 : 0;
  return {start, count > 1 ? step : 1, count};
}

// --- Windows of convolutions and poolings -------------------------------------------------------

// One spatial axis. Tap t of output o reads input o * stride + t * dilation - pad_begin if that is
// in [0, input), else padding.
struct WindowAxis {
  int64_t input = 1;
  int64_t output = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;  // as the model specifies; with ceil_mode windows may exceed it

  // The size of the kernel with the gaps between its taps.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // The length of input and padding from the start of the first window to the end of the last one.
  int64_t reach() const { return (output - 1) * stride + extent(); }
};

// Taps [begin, end).
struct TapRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

// The taps of output position `output` that read the input, not padding.
inline TapRange taps_inside(const WindowAxis& axis, int64_t output) {
  const auto floor_quotient = [](int64_t left, int64_t right) {
    return left / right - (left % right < 0 ? 1 : 0);
  };
  const int64_t start = output * axis.stride - axis.pad_begin;
  const int64_t begin = std::max<int64_t>(0, -floor_quotient(start, axis.dilation));
  const int64_t end =
      std::min(axis.kernel, floor_quotient(axis.input - 1 - start, axis.dilation) + 1);
  return {begin, std::max(begin, end)};
}

// The number of taps that read the input or the padding that the model specifies.
inline int64_t taps_inside_padding(const WindowAxis& axis, int64_t output) {
  const int64_t room = axis.input + axis.pad_begin + axis.pad_end - output * axis.stride;
  return std::min(axis.kernel, (room - 1) / axis.dilation + 1);
}

// Returns a list attribute of `count` entries, or `count` times `otherwise` if the node has none.
// Throws Failure (TESSERA_UNSUPPORTED) if the list has another number of entries.
inline std::vector<int64_t> attribute_list(const Attributes& attributes, const char* name,
                                           size_t count, int64_t otherwise) {
  std::vector<int64_t> found = attributes.get_ints(name);
  if (found.empty()) found.assign(count, otherwise);
  if (found.size() != count) {
    throw Failure(TESSERA_UNSUPPORTED, std::string("cannot read attribute '") + name + "'");
  }
  return found;
}

// Whether the attribute pads defines the padding, and not auto_pad.
inline bool has_explicit_pads(const Attributes& attributes) {
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  return auto_pad.empty() || auto_pad == "NOTSET";
}

// The part of `total` padding that is before the input, if auto_pad is SAME_UPPER or SAME_LOWER. If
// `total` is odd, SAME_UPPER puts the larger half at the end, SAME_LOWER at the start.
inline int64_t same_pad_begin(std::string_view auto_pad, int64_t total) {
  return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
}

// The spatial axes of a node with the attributes of Conv or of a pooling. `kernel`, `input` and
// `output` are the sizes along these axes. Throws as attribute_list() does.
inline std::vector<WindowAxis> window_axes(const Attributes& attributes,
                                           std::span<const int64_t> kernel,
                                           std::span<const int64_t> input,
                                           std::span<const int64_t> output) {
  const size_t rank = kernel.size();
  const std::vector<int64_t> strides = attribute_list(attributes, "strides", rank, 1);
  const std::vector<int64_t> dilations = attribute_list(attributes, "dilations", rank, 1);
  const std::vector<int64_t> pads = attribute_list(attributes, "pads", 2 * rank, 0);
  const bool is_explicit = has_explicit_pads(attributes);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  std::vector<WindowAxis> axes;
  for (size_t index = 0; index < rank; ++index) {
    WindowAxis axis = {.input = input[index],
                       .output = output[index],
                       .kernel = kernel[index],
                       .stride = strides[index],
                       .dilation = dilations[index]};
    if (is_explicit) {
      axis.pad_begin = pads[index];
      axis.pad_end = pads[rank + index];
    } else if (auto_pad != "VALID") {
      const int64_t total = std::max<int64_t>(0, axis.reach() - axis.input);
      axis.pad_begin = same_pad_begin(auto_pad, total);
      axis.pad_end = total - axis.pad_begin;
    }
    axes.push_back(axis);
  }
  return axes;
}

// --- Resize -------------------------------------------------------------------------------------

// Attribute coordinate_transformation_mode.
enum class ResizeCoordinates : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  TfCropAndResize
};

// Attribute nearest_mode. Legacy is the rule of version 10: up if the axis shrinks, else down.
enum class ResizeRounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil, Legacy };

// resize_coordinates() and resize_rounding() throw Failure (TESSERA_UNSUPPORTED) for a name that
// ONNX does not define.
inline ResizeCoordinates resize_coordinates(std::string_view name) {
  constexpr std::pair<std::string_view, ResizeCoordinates> kNames[] = {
      {"half_pixel", ResizeCoordinates::HalfPixel},
      {"half_pixel_symmetric", ResizeCoordinates::HalfPixelSymmetric},
      {"pytorch_half_pixel", ResizeCoordinates::PytorchHalfPixel},
      {"align_corners", ResizeCoordinates::AlignCorners},
      {"asymmetric", ResizeCoordinates::Asymmetric},
      {"tf_half_pixel_for_nn", ResizeCoordinates::TfHalfPixelForNn},
      {"tf_crop_and_resize", ResizeCoordinates::TfCropAndResize}};
  for (const auto& [text, coordinates] : kNames) {
    if (text == name) return coordinates;
  }
  throw Failure(TESSERA_UNSUPPORTED, "does not know '" + std::string(name) + "'");
}

inline ResizeRounding resize_rounding(std::string_view name) {
  constexpr std::pair<std::string_view, ResizeRounding> kNames[] = {
      {"round_prefer_floor", ResizeRounding::PreferFloor},
      {"round_prefer_ceil", ResizeRounding::PreferCeil},
      {"floor", ResizeRounding::Floor},
      {"ceil", ResizeRounding::Ceil}};
  for (const auto& [text, rounding] : kNames) {
    if (text == name) return rounding;
  }
  throw Failure(TESSERA_UNSUPPORTED, "does not know '" + std::string(name) + "'");
}

struct ResizeAxis {
  int64_t input = 0;
  int64_t output = 0;
  // output / input, as the model gives it. Without it, the scale is `resized` / `original`, a
  // quotient of two sizes that float32 may not represent exactly.
  std::optional<float> given_scale = {};
  float crop_start = 0;  // for TfCropAndResize
  float crop_end = 1;
  int64_t resized = 1;
  int64_t original = 1;

  double scale() const {
    if (given_scale) return *given_scale;
    return static_cast<double>(resized) / static_cast<double>(original);
  }
};

// The axes to which the scales, sizes and roi of a Resize refer, in their order.
inline std::vector<size_t> resized_axes(const Node& node, size_t rank) {
  std::vector<size_t> axes;
  if (node.attributes().has("axes")) {
    for (const int64_t axis : node.attributes().get_ints("axes")) {
      axes.push_back(normalized_axis(axis, rank));
    }
    return axes;
  }
  for (size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// The coordinate in the input of the output element at `index`: "Resize" in ONNX's Operators.md.
// With a given scale or crop, it is computed in float32, as frameworks do, so that ties fall the
// same way, except for half_pixel_symmetric. With sizes, it is one quotient of whole numbers,
// rounded once: a tie is a tie, as long as the product of input and output is below 2^51.
inline double source_position(ResizeCoordinates coordinates, const ResizeAxis& axis,
                              int64_t index) {
  const auto input = static_cast<double>(axis.input);
  const auto output = static_cast<double>(axis.output);
  const auto x = static_cast<double>(index);
  if (coordinates == ResizeCoordinates::AlignCorners) {
    return axis.output > 1 ? x * (input - 1) / (output - 1) : 0;
  }
  if (coordinates == ResizeCoordinates::TfCropAndResize) {
    const float start = axis.crop_start;
    const float end = axis.crop_end;
    const auto last_input = static_cast<float>(axis.input - 1);
    if (axis.output == 1) return 0.5F * (start + end) * last_input;
    return start * last_input + static_cast<float>(index) * (end - start) * last_input /
                                    static_cast<float>(axis.output - 1);
  }
  if (coordinates == ResizeCoordinates::PytorchHalfPixel && axis.output == 1) return 0;
  const bool is_symmetric = coordinates == ResizeCoordinates::HalfPixelSymmetric;
  if (axis.given_scale) {
    const float scale = *axis.given_scale;
    if (is_symmetric) {
      // By distances from the centres: the centre has no rounding error that a tie could show.
      return (input - 1 + (2 * x + 1 - output) / scale) / 2;
    }
    const auto position = static_cast<float>(index);
    if (coordinates == ResizeCoordinates::Asymmetric) return position / scale;
    const float from_edge = (position + 0.5F) / scale;
    if (coordinates == ResizeCoordinates::TfHalfPixelForNn) return from_edge;
    return from_edge - 0.5F;
  }
  const auto resized = static_cast<double>(axis.resized);
  const auto original = static_cast<double>(axis.original);
  if (coordinates == ResizeCoordinates::Asymmetric) return x * original / resized;
  double upper = (2 * x + 1) * original;
  if (is_symmetric) upper += input * resized - output * original;
  if (coordinates != ResizeCoordinates::TfHalfPixelForNn) upper -= resized;
  return upper / (2 * resized);
}

// Clamps a position so that it can be converted to an integer. Positions of more than two elements
// outside the input all have the same nearest element. NaN becomes 0.
inline double bounded_position(const ResizeAxis& axis, double position) {
  if (std::isnan(position)) return 0;
  return std::clamp(position, -2.0, static_cast<double>(axis.input) + 1);
}

// The element of the input nearest to `position`.
inline int64_t nearest_source(ResizeRounding rounding, const ResizeAxis& axis, double position) {
  const double bounded = bounded_position(axis, position);
  const double down = std::floor(bounded);
  const double above = bounded - down;
  bool is_up = false;
  switch (rounding) {
    case ResizeRounding::PreferFloor:
      is_up = above > 0.5;
      break;
    case ResizeRounding::PreferCeil:
      is_up = above >= 0.5;
      break;
    case ResizeRounding::Floor:
      break;
    case ResizeRounding::Ceil:
      is_up = above > 0;
      break;
    case ResizeRounding::Legacy:
      is_up = above > 0 && axis.scale() < 1;
      break;
  }
  const int64_t chosen = static_cast<int64_t>(down) + (is_up ? 1 : 0);
  return std::clamp<int64_t>(chosen, 0, axis.input - 1);
}

// --- Clip ---------------------------------------------------------------------------------------

// A bound is nullopt if it is not known before running.
struct ClipBounds {
  std::optional<double> min;
  std::optional<double> max;
};

// The bounds of a Clip. Up to version 10 they are attributes, by default the largest finite
// float32. Since then they are inputs; a bound that is left out is infinite.
inline ClipBounds clip_bounds(const Node& node) {
  constexpr int32_t kFirstInputVersion = 11;
  if (node.version() < kFirstInputVersion) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    return {node.attributes().get_float("min", -kLargest),
            node.attributes().get_float("max", kLargest)};
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {node.input(1).is_present() ? constant_number(node.input(1)) : -kInfinity,
          node.input(2).is_present() ? constant_number(node.input(2)) : kInfinity};
}

// --- Strides and broadcasting -------------------------------------------------------------------

// The strides, in elements, of a dense row-major tensor.
inline std::vector<int64_t> dense_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

// Whether a tensor of `dims` broadcasts to one of `result`, as NumPy defines it.
inline bool broadcasts_to(std::span<const int64_t> dims, std::span<const int64_t> result) {
  if (dims.size() > result.size()) return false;
  const size_t added = result.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1 && dims[axis] != result[added + axis]) return false;
  }
  return true;
}

// The strides, in elements, with which a dense row-major operand of `dims` is read for a result of
// `rank` axes to which it broadcasts: 0 along axes of which the operand has only one element.
inline std::vector<int64_t> broadcast_strides(std::span<const int64_t> dims, size_t rank) {
  const std::vector<int64_t> own = dense_strides(dims);
  std::vector<int64_t> strides(rank, 0);
  const size_t added = rank - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1) strides[added + axis] = own[axis];
  }
  return strides;
}

}  // namespace tessera::plugin
