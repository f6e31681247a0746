// MaxPool and AveragePool over one or two axes. reduce.cc has the global ones.
#include <string>
#include <utility>
#include <vector>

#include "offers.h"
#include "window.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// Definitions: IS_MAX, or COUNTS_PADDING.
constexpr const char* kPoolingSource = R"(
KERNEL void pool(__global const uchar *x_base, ulong x_at, __global uchar *y_base, ulong y_at,
                 WINDOW_PARAMETERS) {
  WINDOW_BEGIN
  GRID_LOOP {
    const int top = WINDOW_TOP;
    const int left = WINDOW_LEFT;
    __global const float *x = AT(const float, x_base, x_at) + WINDOW_PLANE;
#ifdef IS_MAX
    float total = -INFINITY;
    FOR_TAPS(i, j) {
      const float element = x[TAP_POSITION(top, left, i, j)];
      total = TAP_IS_INSIDE(top, left, i, j) ? LARGER(total, element) : total;
    }
#else
    float2 sum = 0;
    int count = 0;
    FOR_TAPS(i, j) {
      const float element = x[TAP_POSITION(top, left, i, j)];
      sum = added(sum, TAP_IS_INSIDE(top, left, i, j) ? element : 0.0f);
#ifdef COUNTS_PADDING
      // The padding that the model specifies counts. A window may leave it, if sizes are rounded
      // up.
      count += (TAP_ROW(top, i) < in_rows + pad_bottom) &
               (TAP_COLUMN(left, j) < in_columns + pad_right);
#else
      count += TAP_IS_INSIDE(top, left, i, j);
#endif
    }
    const float total = count == 0 ? 0.0f : rounded(sum) / count;
#endif
    AT(float, y_base, y_at)[GRID_INDEX] = total;
  }
}
)";

void offer_pooling(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  const bool is_max = node.op() == "MaxPool";
  const Value indices = node.output(1);
  if (indices.is_present() && (indices.is_needed() || !indices.consumers().empty())) {
    throw Failure(TESSERA_UNSUPPORTED, "does not return the indices of MaxPool");
  }
  const Window window = window_of(node, node.attributes().get_ints("kernel_shape"));
  const std::vector<int64_t> dims = node.output(0).type().dims;
  Launch launch = window_launch(window, {{.count = dims[0] * dims[1]}});
  launch.source = kPoolingSource;
  launch.name = "pool";
  if (is_max) launch.definitions += "#define IS_MAX\n";
  if (!is_max && node.attributes().get_int("count_include_pad") != 0) {
    launch.definitions += "#define COUNTS_PADDING\n";
  }
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  launch.arguments.insert(launch.arguments.begin(), {from, offer.write(node.output(0))});
  offer.launch(std::move(launch));
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

}  // namespace

void propose_poolings(const Offers& offers) {
  offers.context().for_each({"AveragePool", "MaxPool"},
                            [&](const Node& node) { offer_pooling(offers, node); });
}

}  // namespace tessera::opencl
