#include "base/window.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Attributes;
using plugin::Failure;

namespace {

// The window without padding.
Window unpadded_window(const Attributes& attributes, const memory::dims& kernel) {
  Window window;
  window.kernel = kernel;
  window.strides = plugin::attribute_list(attributes, "strides", kernel.size(), 1);
  window.dilations = plugin::attribute_list(attributes, "dilations", kernel.size(), 1);
  for (int64_t& dilation : window.dilations) --dilation;
  return window;
}

bool is_same(const std::string& auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
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
  Window window = unpadded_window(attributes, kernel);
  for (const plugin::WindowAxis& axis : plugin::window_axes(attributes, kernel, input, output)) {
    // Padding up to the end of the last window: less than the model asks for if no window reaches
    // that far.
    const int64_t end = std::max<int64_t>(0, axis.reach() - axis.input - axis.pad_begin);
    window.pads_begin.push_back(axis.pad_begin);
    window.pads_end.push_back(end);
    if (end > axis.pad_end) window.reaches_beyond_padding = true;
  }
  return window;
}

Window transposed_window_of(const Attributes& attributes, const memory::dims& kernel,
                            const memory::dims& input, const memory::dims& output) {
  const size_t rank = kernel.size();
  Window window = unpadded_window(attributes, kernel);
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const memory::dims pads = plugin::attribute_list(attributes, "pads", 2 * rank, 0);
  const memory::dims extra = plugin::attribute_list(attributes, "output_padding", rank, 0);
  const bool is_shape_given = !attributes.get_ints("output_shape").empty();
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t reach = (input[axis] - 1) * window.strides[axis] + window.extent(axis);
    const int64_t total = std::max<int64_t>(0, reach + extra[axis] - output[axis]);
    int64_t begin = auto_pad == "VALID" ? 0 : pads[axis];
    if (is_shape_given || is_same(auto_pad)) begin = plugin::same_pad_begin(auto_pad, total);
    window.pads_begin.push_back(begin);
    window.pads_end.push_back(std::max<int64_t>(0, reach - output[axis] - begin));
  }
  return window;
}

}  // namespace tessera::onednn
