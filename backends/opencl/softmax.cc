// Softmax and LogSoftmax.
#include <algorithm>
#include <string>
#include <vector>

#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Node;

namespace {

// With IS_GROUPED, a group computes one row of neighbours together, else each work-item computes a
// row, whose elements are `stride` apart. NaN in a row makes the sum NaN, and with it the row.
constexpr const char* kSoftmaxSource = R"(
#ifdef IS_GROUPED
#define FIRST_ITEM ((int)get_local_id(0))
#define STEP GROUP
float combined_largest(float value, __local float *values) {
  const int item = get_local_id(0);
  values[item] = value;
  for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_group) values[item] = LARGER(values[item], values[item + half_group]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = values[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}
float combined_sum(float value, __local float *values) {
  const int item = get_local_id(0);
  values[item] = value;
  for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_group) values[item] += values[item + half_group];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return values[0];
}
#else
#define FIRST_ITEM 0
#define STEP 1
#endif

KERNEL void softmax(__global const uchar *x_base, ulong x_at, __global uchar *y_base, ulong y_at,
                    int rows, int length, int stride) {
#ifdef IS_GROUPED
  __local float values[GROUP];
  const int row = get_group_id(0);
#else
  const int row = get_global_id(0);
  if (row < rows)
#endif
  {
    const int start = row / stride * length * stride + row % stride;
    __global const float *x = AT(const float, x_base, x_at) + start;
    __global float *y = AT(float, y_base, y_at) + start;
    float largest = -INFINITY;
    for (int index = FIRST_ITEM; index < length; index += STEP) {
      largest = LARGER(largest, x[index * stride]);
    }
#ifdef IS_GROUPED
    largest = combined_largest(largest, values);
#endif
    float2 exact_sum = 0;
    for (int index = FIRST_ITEM; index < length; index += STEP) {
      exact_sum = added(exact_sum, exp(x[index * stride] - largest));
    }
    float sum = rounded(exact_sum);
#ifdef IS_GROUPED
    sum = combined_sum(sum, values);
#endif
#ifdef IS_LOG
    const float log_sum = log(sum);
#endif
    for (int index = FIRST_ITEM; index < length; index += STEP) {
      const float shifted = x[index * stride] - largest;
#ifdef IS_LOG
      y[index * stride] = shifted - log_sum;
#else
      y[index * stride] = exp(shifted) / sum;
#endif
    }
  }
}
)";

constexpr int32_t kFirstSingleAxisVersion = 13;

void offer_softmax(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const bool is_single_axis = node.version() >= kFirstSingleAxisVersion;
  int64_t axis = node.attributes().get_int("axis", is_single_axis ? -1 : 1);
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += std::max<int64_t>(1, rank);
  // Before version 13, a row consists of all axes from `axis` on.
  const int64_t row_end = is_single_axis ? axis + 1 : rank;
  int64_t outer = 1;
  int64_t length = 1;
  int64_t stride = 1;
  for (int64_t index = 0; index < rank; ++index) {
    const int64_t dim = dims[static_cast<size_t>(index)];
    (index < axis ? outer : index < row_end ? length : stride) *= dim;
  }
  const int64_t rows = outer * stride;
  const bool is_grouped = stride == 1 && length >= kGroupItems;
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Place to = offer.write(node.output(0));
  offer.launch({.definitions = std::string(is_grouped ? "#define IS_GROUPED\n" : "") +
                               (node.op() == "LogSoftmax" ? "#define IS_LOG\n" : ""),
                .source = kSoftmaxSource,
                .name = "softmax",
                .arguments = {from, to, narrow(rows), narrow(length), narrow(stride)},
                .groups = is_grouped ? rows : groups_for(rows, kGroupItems),
                .group_items = kGroupItems});
  // Each element is read for the last time when its result is written, by the same work-item.
  offer.allow_in_place(from);
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

}  // namespace

void propose_softmaxes(const Offers& offers) {
  offers.context().for_each({"LogSoftmax", "Softmax"},
                            [&](const Node& node) { offer_softmax(offers, node); });
}

}  // namespace tessera::opencl
