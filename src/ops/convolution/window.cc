#include "ops/convolution/window.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tessera/error.h"

namespace tessera::ops {
namespace {

// Larger numbers are useless, and products of two such numbers fit 64 bits.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

[[noreturn]] void fail(const Node& node, std::string_view attribute, const std::string& message) {
  throw Error(ErrorKind::InvalidModel,
              location_of(node) + ", attribute '" + std::string(attribute) + "'", message);
}

// floor(left / right) for right > 0.
int64_t floor_quotient(int64_t left, int64_t right) {
  return left / right - (left % right < 0 ? 1 : 0);
}

int64_t ceil_quotient(int64_t left, int64_t right) { return -floor_quotient(-left, right); }

// The padding of one axis of a known input, with SAME resolved.
std::pair<int64_t, int64_t> pads_of(const WindowAttributes& window, size_t axis, int64_t input) {
  if (window.auto_pad == AutoPad::Valid) return {0, 0};
  if (!is_same(window.auto_pad)) return {window.pads_begin[axis], window.pads_end[axis]};
  // (output - 1) * stride + kernel - input with output = ceil(input / stride), without overflow.
  const int64_t stride = window.strides[axis];
  const int64_t last_start = input == 0 ? 0 : (input - 1) / stride * stride;
  const int64_t missing = dilated_kernel(window, axis) - (input - last_start);
  const int64_t total = std::max<int64_t>(0, missing);
  const int64_t smaller = total / 2;
  if (window.auto_pad == AutoPad::SameUpper) return {smaller, total - smaller};
  return {total - smaller, smaller};
}

// The output length along an axis of unknown length, assumed to be large enough.
Dim symbolic_output(const WindowAttributes& window, size_t axis, const Dim& input) {
  const int64_t stride = window.strides[axis];
  if (is_same(window.auto_pad)) {
    return stride == 1 ? input : add(floor_divide(subtract(input, 1), stride), 1);
  }
  const bool is_valid = window.auto_pad == AutoPad::Valid;
  const int64_t begin = is_valid ? 0 : window.pads_begin[axis];
  const int64_t end = is_valid ? 0 : window.pads_end[axis];
  const int64_t kernel = dilated_kernel(window, axis);
  const int64_t missing = begin + end - kernel;
  if (stride == 1) return add(input, missing + 1);
  if (!window.rounds_up) return add(floor_divide(add(input, missing), stride), 1);
  // Rounding up equals rounding down after adding stride - 1.
  const Dim last = floor_divide(add(input, missing + stride - 1), stride);
  if (end + stride <= kernel) return add(last, 1);
  // A last window that starts in the padding at the end is omitted.
  const Dim last_start = floor_divide(add(input, begin - 1), stride);
  return add(expression("min", {last, last_start}), 1);
}

}  // namespace

AxisLengths read_lengths(const Node& node, std::string_view attribute, size_t length,
                         int64_t min_value, int64_t fallback) {
  const std::vector<int64_t>* found = node.attributes.find_ints(attribute);
  if (found == nullptr) return {{}, fallback};
  if (found->size() != length) {
    fail(node, attribute,
         "expected " + std::to_string(length) + " numbers, found " + std::to_string(found->size()));
  }
  for (const int64_t value : *found) {
    if (value < min_value || value > kLargest) {
      fail(node, attribute,
           "expected numbers from " + std::to_string(min_value) + " to " +
               std::to_string(kLargest) + ", found " + std::to_string(value));
    }
  }
  return {*found, fallback};
}

AutoPad read_auto_pad(const Node& node) {
  const std::string* given = node.attributes.find_string("auto_pad");
  if (given == nullptr) return AutoPad::NotSet;
  const std::string& word = *given;
  if (word == "NOTSET" || word.empty()) return AutoPad::NotSet;
  if (word == "SAME_UPPER") return AutoPad::SameUpper;
  if (word == "SAME_LOWER") return AutoPad::SameLower;
  if (word == "VALID") return AutoPad::Valid;
  fail(node, "auto_pad", "expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found '" + word + "'");
}

WindowAttributes read_window(const Node& node, std::span<const int64_t> kernel) {
  const size_t rank = kernel.size();
  WindowAttributes window;
  window.auto_pad = read_auto_pad(node);
  const int64_t* ceil_mode = node.attributes.find_int("ceil_mode");
  window.rounds_up = ceil_mode != nullptr && *ceil_mode != 0;
  for (const int64_t length : kernel) {
    if (length < 1 || length > kLargest) {
      fail(node, "kernel_shape",
           "expected a kernel of 1 to " + std::to_string(kLargest) + " along each axis, found " +
               std::to_string(length));
    }
  }
  window.kernel = kernel;
  window.strides = read_lengths(node, "strides", rank, 1, 1);
  window.dilations = read_lengths(node, "dilations", rank, 1, 1);
  const std::span<const int64_t> pads = read_lengths(node, "pads", 2 * rank, 0, 0).given;
  if (pads.empty()) return window;
  window.pads_begin.given = pads.first(rank);
  window.pads_end.given = pads.last(rank);
  return window;
}

void check_spatial_rank(const Node& node, size_t rank) {
  if (rank < 3) {
    throw Error(ErrorKind::InvalidModel, location_of(node),
                "expected an input of batch, channels and at least one spatial axis, found rank " +
                    std::to_string(rank));
  }
  if (rank > 2 + kMaxSpatialAxes) {
    throw Error(ErrorKind::Unsupported, location_of(node),
                "expected at most " + std::to_string(kMaxSpatialAxes) + " spatial axes, found " +
                    std::to_string(rank - 2));
  }
}

int64_t dilated_kernel(const WindowAttributes& window, size_t axis) {
  return (window.kernel[axis] - 1) * window.dilations[axis] + 1;
}

Dim window_output(const Node& node, const WindowAttributes& window, size_t axis, const Dim& input) {
  if (!input.is_known()) return symbolic_output(window, axis, input);
  const int64_t kernel = dilated_kernel(window, axis);
  const auto [begin, end] = pads_of(window, axis, input.value());
  const int64_t padded = add(add(input, begin), end).value();
  // The reach of a window that is cut off at the end, so that kernels need not check again.
  add(padded, kernel);
  if (input == Dim(0) && is_same(window.auto_pad)) return 0;
  const int64_t stride = window.strides[axis];
  const int64_t room = padded - kernel;
  int64_t last = floor_quotient(room, stride);
  if (window.rounds_up && !is_same(window.auto_pad)) {
    last = std::min(ceil_quotient(room, stride), floor_quotient(input.value() + begin - 1, stride));
  }
  if (last < -1 && input != Dim(0)) {
    throw Error(ErrorKind::InvalidModel, location_of(node),
                "expected a window no larger than the padded input along spatial axis " +
                    std::to_string(axis) + ", found a window of " + std::to_string(kernel) +
                    " on an input of " + input.text() + " with padding " + std::to_string(begin) +
                    " and " + std::to_string(end));
  }
  return std::max<int64_t>(0, last + 1);
}

Window known_window(const Node& node, const WindowAttributes& attributes,
                    std::span<const int64_t> input_spatial) {
  Window window;
  const size_t first = kMaxSpatialAxes - input_spatial.size();
  for (size_t axis = 0; axis < input_spatial.size(); ++axis) {
    const int64_t input = input_spatial[axis];
    const auto [begin, end] = pads_of(attributes, axis, input);
    window[first + axis] = {.input = input,
                            .output = window_output(node, attributes, axis, input).value(),
                            .kernel = attributes.kernel[axis],
                            .stride = attributes.strides[axis],
                            .dilation = attributes.dilations[axis],
                            .pad_begin = begin,
                            .pad_end = end};
  }
  return window;
}

TapRange taps_inside(const WindowAxis& axis, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad_begin;
  const int64_t begin = std::max<int64_t>(0, ceil_quotient(-start, axis.dilation));
  const int64_t end =
      std::min(axis.kernel, floor_quotient(axis.input - 1 - start, axis.dilation) + 1);
  return {begin, std::max(begin, end)};
}

TapRange outputs_inside(const WindowAxis& axis, int64_t tap) {
  const int64_t shift = axis.pad_begin - tap * axis.dilation;
  const int64_t begin =
      std::min(axis.output, std::max<int64_t>(0, ceil_quotient(shift, axis.stride)));
  const int64_t end =
      std::min(axis.output, floor_quotient(axis.input - 1 + shift, axis.stride) + 1);
  return {begin, std::max(begin, end)};
}

int64_t input_count(const Window& window) {
  return window[0].input * window[1].input * window[2].input;
}

int64_t output_count(const Window& window) {
  return window[0].output * window[1].output * window[2].output;
}

int64_t tap_count(const Window& window) {
  return window[0].kernel * window[1].kernel * window[2].kernel;
}

}  // namespace tessera::ops
