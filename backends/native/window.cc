#include "window.h"

#include <algorithm>
#include <string>

namespace tessera::native {

using plugin::Attributes;
using plugin::Failure;

namespace {

std::vector<int64_t> lengths(const Attributes& attributes, const char* name, size_t count,
                             int64_t otherwise) {
  std::vector<int64_t> found = attributes.get_ints(name);
  if (found.empty()) found.assign(count, otherwise);
  if (found.size() != count) {
    throw Failure(TESSERA_UNSUPPORTED, std::string("cannot read attribute '") + name + "'");
  }
  return found;
}

// floor(left / right) for right > 0.
int64_t floor_quotient(int64_t left, int64_t right) {
  return left / right - (left % right < 0 ? 1 : 0);
}

}  // namespace

TapRange taps_inside(const WindowAxis& axis, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad_begin;
  const int64_t begin = std::max<int64_t>(0, -floor_quotient(start, axis.dilation));
  const int64_t end =
      std::min(axis.kernel, floor_quotient(axis.input - 1 - start, axis.dilation) + 1);
  return {begin, std::max(begin, end)};
}

int64_t taps_inside_padding(const WindowAxis& axis, int64_t output) {
  const int64_t room = axis.input + axis.pad_begin + axis.pad_end - output * axis.stride;
  return std::min(axis.kernel, (room - 1) / axis.dilation + 1);
}

Window window_of(const Attributes& attributes, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& input, const std::vector<int64_t>& output) {
  const size_t rank = kernel.size();
  if (rank == 0 || rank > 3 || input.size() != rank + 2 || output.size() != rank + 2) {
    throw Failure(TESSERA_UNSUPPORTED, "needs one to three spatial axes");
  }
  const std::vector<int64_t> strides = lengths(attributes, "strides", rank, 1);
  const std::vector<int64_t> dilations = lengths(attributes, "dilations", rank, 1);
  const std::vector<int64_t> pads = lengths(attributes, "pads", 2 * rank, 0);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool is_given = auto_pad.empty() || auto_pad == "NOTSET";
  Window window;
  for (size_t place = 0; place < rank; ++place) {
    WindowAxis& axis = window[3 - rank + place];
    axis = {.input = input[place + 2],
            .output = output[place + 2],
            .kernel = kernel[place],
            .stride = strides[place],
            .dilation = dilations[place]};
    if (is_given) {
      axis.pad_begin = pads[place];
      axis.pad_end = pads[rank + place];
    } else if (auto_pad != "VALID") {
      const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
      const int64_t reach = (axis.output - 1) * axis.stride + extent;
      const int64_t total = std::max<int64_t>(0, reach - axis.input);
      axis.pad_begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      axis.pad_end = total - axis.pad_begin;
    }
  }
  return window;
}

}  // namespace tessera::native
