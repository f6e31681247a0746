// Conv over one or two axes: as a matrix product of the weights and the columns of the input
// (im2col), or, with groups of few channels, by a kernel that computes it directly.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grid.h"
#include "offers.h"
#include "products.h"
#include "window.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// The largest size of the columns that are made at a time, so that they take little memory. It is
// larger with CLBlast, whose calls cost more.
constexpr int64_t kMaxColumnBytes = 2 << 20;
constexpr int64_t kMaxClblastColumnBytes = 16 << 20;
// With fewer channels in a group, products are too small.
constexpr int64_t kMinProductChannels = 8;

// Row k of the columns has the elements that tap k of the kernel reads, for the pixels of a part of
// the output. The operands of the grid are the element of x, and its row and column with the
// padding.
constexpr const char* kIm2colSource = R"(
KERNEL void im2col(__global const uchar *x_base, ulong x_at, __global uchar *y_base, ulong y_at,
                   int first_row, int first_column, int in_rows, int in_columns, GRID_PARAMETERS,
                   AXES(x_stride), AXES(row_stride), AXES(column_stride)) {
  const int first = first_row * in_columns + first_column;
  GRID_BEGIN
  GRID_BASE(x)
  GRID_BASE(row)
  GRID_BASE(column)
  GRID_LOOP {
    const int row = first_row + GRID_POSITION(row);
    const int column = first_column + GRID_POSITION(column);
    // A negative number is a large one without a sign.
    const bool is_inside = ((uint)row < (uint)in_rows) & ((uint)column < (uint)in_columns);
    const float element =
        AT(const float, x_base, x_at)[is_inside ? first + GRID_POSITION(x) : 0];
    AT(float, y_base, y_at)[GRID_INDEX] = is_inside ? element : 0.0f;
  }
}
)";

// Each work-item computes one output. IN_CHANNELS is the number of channels of a group, as a
// constant if it is 1.
constexpr const char* kDirect = R"(
KERNEL void convolve(__global const uchar *x_base, ulong x_at, __global const uchar *w_base,
                     ulong w_at, __global const uchar *bias_base, ulong bias_at,
                     __global uchar *y_base, ulong y_at, int in_channels, WINDOW_PARAMETERS,
                     AXES(weight_stride), AXES(channel_stride)) {
  WINDOW_BEGIN
  GRID_BASE(weight)
  GRID_BASE(channel)
  GRID_LOOP {
    const int top = WINDOW_TOP;
    const int left = WINDOW_LEFT;
    __global const float *x = AT(const float, x_base, x_at) + WINDOW_PLANE;
    __global const float *w = AT(const float, w_base, w_at) + GRID_POSITION(weight);
    float total = 0;
    for (int channel = 0; channel < IN_CHANNELS; ++channel) {
      FOR_TAPS(i, j) {
        const float element = x[TAP_POSITION(top, left, i, j)] * w[i * kernel_columns + j];
        total += TAP_IS_INSIDE(top, left, i, j) ? element : 0.0f;
      }
      x += in_rows * in_columns;
      w += kernel_rows * kernel_columns;
    }
#ifdef HAS_BIAS
    total += AT(const float, bias_base, bias_at)[GRID_POSITION(channel)];
#endif
    AT(float, y_base, y_at)[GRID_INDEX] = total;
  }
}
)";

struct Convolution {
  int64_t images = 1;
  int64_t groups = 1;
  int64_t group_in = 1;  // channels of a group
  int64_t group_out = 1;
  int64_t taps = 1;  // of a channel
  int64_t in_pixels = 1;
  int64_t out_pixels = 1;
  Window window;
  bool has_bias = false;

  int64_t out_channels() const { return groups * group_out; }
  int64_t depth() const { return group_in * taps; }  // of the product
  // The weights of a group times the columns for `pixels` pixels.
  Product product(int64_t pixels) const {
    return {.m = group_out,
            .n = pixels,
            .k = depth(),
            .beta = has_bias ? 1.0F : 0.0F,
            .lda = depth(),
            .ldb = pixels,
            .ldc = out_pixels};
  }
  // Whether the input already has the elements of the columns in their order.
  bool reads_pixels_in_order() const {
    return std::all_of(window.begin(), window.end(), [](const plugin::WindowAxis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 &&
             axis.input == axis.output;
    });
  }
};

Convolution convolution_of(const Node& node) {
  require_floats(node.input(0));
  require_floats(node.input(1));
  const std::vector<int64_t> weights = node.input(1).type().dims;
  Convolution conv;
  conv.window = window_of(node, std::span(weights).subspan(2));
  conv.has_bias = node.input(2).is_present();
  if (conv.has_bias) require_floats(node.input(2));
  conv.images = node.input(0).type().dims[0];
  conv.groups = node.attributes().get_int("group", 1);
  conv.group_in = weights[1];
  conv.group_out = weights[0] / conv.groups;
  for (const plugin::WindowAxis& axis : conv.window) {
    conv.taps *= axis.kernel;
    conv.in_pixels *= axis.input;
    conv.out_pixels *= axis.output;
  }
  return conv;
}

void offer_direct(const Offers& offers, const Node& node, const Convolution& conv) {
  Offer offer(offers, node, "direct");
  const Place from = offer.read(node.input(0));
  const Place weights = offer.read(node.input(1));
  const Place bias = conv.has_bias ? offer.read(node.input(2)) : weights;
  const Place to = offer.write(node.output(0));
  const int64_t weights_of_channel = conv.depth();
  Launch launch =
      window_launch(conv.window,
                    {{.count = conv.images, .planes = conv.groups * conv.group_in, .more = {0, 0}},
                     {.count = conv.groups,
                      .planes = conv.group_in,
                      .more = {conv.group_out * weights_of_channel, conv.group_out}},
                     {.count = conv.group_out, .planes = 0, .more = {weights_of_channel, 1}}},
                    {"weight", "channel"});
  launch.definitions += std::string(conv.has_bias ? "#define HAS_BIAS\n" : "") +
                        define("IN_CHANNELS", conv.group_in == 1 ? "1" : "in_channels");
  launch.source = kDirect;
  launch.name = "convolve";
  launch.arguments.insert(launch.arguments.begin(),
                          {from, weights, bias, to, narrow(conv.group_in)});
  offer.launch(std::move(launch));
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

// Some rows of the output of one group of one image, or some columns if there is one row.
struct Part {
  int64_t first_row = 0;
  int64_t rows = 1;
  int64_t first_column = 0;
  int64_t columns = 1;

  int64_t pixels() const { return rows * columns; }
};

// The parts of at most `max_pixels` pixels, as far as whole rows allow.
std::vector<Part> parts_of(const Window& window, int64_t max_pixels) {
  const int64_t rows = window[0].output;
  const int64_t columns = window[1].output;
  std::vector<Part> parts;
  if (rows == 1) {
    for (int64_t first = 0; first < columns; first += max_pixels) {
      parts.push_back({.first_column = first, .columns = std::min(max_pixels, columns - first)});
    }
    return parts;
  }
  const int64_t part_rows = std::max<int64_t>(1, max_pixels / columns);
  for (int64_t first = 0; first < rows; first += part_rows) {
    parts.push_back(
        {.first_row = first, .rows = std::min(part_rows, rows - first), .columns = columns});
  }
  return parts;
}

Launch im2col(const Convolution& conv, const Place& image, const Place& columns, const Part& part) {
  const auto& [y, x] = conv.window;
  const StridedSpace space = {.size = {conv.group_in, y.kernel, x.kernel, part.rows, part.columns},
                              .strides = {{y.input * x.input, y.dilation * x.input, x.dilation,
                                           y.stride * x.input, x.stride},
                                          {0, y.dilation, 0, y.stride, 0},
                                          {0, 0, x.dilation, 0, x.stride}}};
  const Grid grid = make_grid(space, {"x", "row", "column"});
  Launch launch{.definitions = grid.definitions,
                .source = kIm2colSource,
                .name = "im2col",
                .arguments = {image, columns, narrow(part.first_row * y.stride - y.pad_begin),
                              narrow(part.first_column * x.stride - x.pad_begin), narrow(y.input),
                              narrow(x.input)},
                .groups = grid.groups,
                .group_items = grid.group_items};
  launch.arguments.insert(launch.arguments.end(), grid.arguments.begin(), grid.arguments.end());
  return launch;
}

class ProductOffer {
 public:
  ProductOffer(const Offers& offers, const Node& node, const Convolution& conv,
               const std::string& algorithm)
      : offers_(offers),
        node_(node),
        conv_(conv),
        algorithm_(algorithm),
        offer_(offers, node, algorithm) {}

  void add() {
    const Place from = offer_.read(node_.input(0));
    const Place weights = offer_.read(node_.input(1));
    const Place bias = conv_.has_bias ? offer_.read(node_.input(2)) : Place{};
    const Place to = offer_.write(node_.output(0));
    if (conv_.has_bias) {
      // The products add to it.
      offer_.launch(broadcast_floats(bias, {conv_.out_channels(), 1}, to,
                                     {conv_.images, conv_.out_channels(), conv_.out_pixels}));
    }
    reserve();
    for (int64_t image = 0; image < conv_.images; ++image) {
      for (int64_t group = 0; group < conv_.groups; ++group) {
        const int64_t index = image * conv_.groups + group;
        add_group(from.plus(index * conv_.group_in * conv_.in_pixels * kFloatBytes),
                  weights.plus(group * conv_.group_out * conv_.depth() * kFloatBytes),
                  to.plus(index * conv_.group_out * conv_.out_pixels * kFloatBytes));
      }
    }
    offer_.add(static_cast<double>(node_.flops()), bytes_of(node_));
  }

 private:
  void reserve() {
    if (conv_.reads_pixels_in_order()) {
      parts_ = {{.columns = conv_.out_pixels}};
    } else {
      const int64_t bytes = algorithm_ == "clblast" ? kMaxClblastColumnBytes : kMaxColumnBytes;
      parts_ = parts_of(conv_.window,
                        std::max<int64_t>(kGroupItems, bytes / (conv_.depth() * kFloatBytes)));
      columns_ = offer_.reserve(conv_.depth() * parts_.front().pixels() * kFloatBytes);
    }
    workspace_ =
        offer_.reserve(workspace_bytes(algorithm_, conv_.product(parts_.front().pixels())));
  }

  void add_group(const Place& from, const Place& weights, const Place& to) {
    for (const Part& part : parts_) {
      Product product = conv_.product(part.pixels());
      const int64_t first = part.first_row * part.columns + part.first_column;
      product.a = weights;
      product.b = from;
      product.c = to.plus(first * kFloatBytes);
      product.workspace = workspace_;
      if (!conv_.reads_pixels_in_order()) {
        offer_.launch(im2col(conv_, from, columns_, part));
        product.b = columns_;
      }
      multiply(offers_, offer_, algorithm_, std::move(product));
    }
  }

  const Offers& offers_;
  const Node& node_;
  const Convolution& conv_;
  const std::string& algorithm_;
  Offer offer_;
  std::vector<Part> parts_;  // the first one is the largest
  Place columns_;
  Place workspace_;
};

void offer_convolution(const Offers& offers, const Node& node) {
  const Convolution conv = convolution_of(node);
  if (conv.groups > 1 && std::min(conv.group_in, conv.group_out) < kMinProductChannels) {
    return offer_direct(offers, node, conv);
  }
  const std::vector<std::string> algorithms =
      product_algorithms(offers, conv.product(conv.out_pixels));
  for (const std::string& algorithm : algorithms) {
    ProductOffer(offers, node, conv, algorithm).add();
  }
}

}  // namespace

void propose_convolutions(const Offers& offers) {
  offers.context().for_each({"Conv"}, [&](const Node& node) { offer_convolution(offers, node); });
}

}  // namespace tessera::opencl
