#include "window.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

namespace tessera::onednn {

using dnnl::memory;
using plugin::Attributes;
using plugin::Failure;

namespace {

memory::dims lengths(const Attributes& attributes, const char* name, size_t count,
                     int64_t otherwise) {
  memory::dims found = attributes.get_ints(name);
  if (found.empty()) found.assign(count, otherwise);
  if (found.size() != count) {
    throw Failure(TESSERA_UNSUPPORTED, std::string("cannot read attribute '") + name + "'");
  }
  return found;
}

// Everything but the padding.
Window unpadded_window(const Attributes& attributes, const memory::dims& kernel) {
  Window window;
  window.kernel = kernel;
  window.strides = lengths(attributes, "strides", kernel.size(), 1);
  window.dilations = lengths(attributes, "dilations", kernel.size(), 1);
  for (int64_t& dilation : window.dilations) --dilation;
  return window;
}

bool is_same(const std::string& auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

// The part of `total` that lies in front.
int64_t front(const std::string& auto_pad, int64_t total) {
  return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
}

}  // namespace

int64_t Window::taps() const {
  return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
}

memory::dims spatial(const std::vector<int64_t>& dims) {
  if (dims.size() < 3) throw Failure(TESSERA_UNSUPPORTED, "needs at least one spatial axis");
  return {dims.begin() + 2, dims.end()};
}

Window window_of(const Attributes& attributes, const memory::dims& kernel,
                 const memory::dims& input, const memory::dims& output) {
  const size_t rank = kernel.size();
  Window window = unpadded_window(attributes, kernel);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const memory::dims pads = lengths(attributes, "pads", 2 * rank, 0);
  for (size_t axis = 0; axis < rank; ++axis) {
    // Up to the end of the last window. Less than asked for where the windows do not reach the end.
    const int64_t reach = (output[axis] - 1) * window.strides[axis] + window.extent(axis);
    const int64_t total = std::max<int64_t>(0, reach - input[axis]);
    const bool is_given = auto_pad.empty() || auto_pad == "NOTSET";
    int64_t begin = is_given ? pads[axis] : 0;
    if (is_same(auto_pad)) begin = front(auto_pad, total);
    const int64_t end = std::max<int64_t>(0, reach - input[axis] - begin);
    window.pads_begin.push_back(begin);
    window.pads_end.push_back(end);
    if (is_given && end > pads[rank + axis]) window.reaches_beyond_padding = true;
  }
  return window;
}

Window transposed_window_of(const Attributes& attributes, const memory::dims& kernel,
                            const memory::dims& input, const memory::dims& output) {
  const size_t rank = kernel.size();
  Window window = unpadded_window(attributes, kernel);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const memory::dims pads = lengths(attributes, "pads", 2 * rank, 0);
  const memory::dims extra = lengths(attributes, "output_padding", rank, 0);
  const bool is_shape_given = !attributes.get_ints("output_shape").empty();
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t reach = (input[axis] - 1) * window.strides[axis] + window.extent(axis);
    const int64_t total = std::max<int64_t>(0, reach + extra[axis] - output[axis]);
    int64_t begin = auto_pad == "VALID" ? 0 : pads[axis];
    if (is_shape_given || is_same(auto_pad)) begin = front(auto_pad, total);
    window.pads_begin.push_back(begin);
    window.pads_end.push_back(std::max<int64_t>(0, reach - output[axis] - begin));
  }
  return window;
}

}  // namespace tessera::onednn
