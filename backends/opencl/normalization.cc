// LayerNormalization and InstanceNormalization: rows that are normalised by their own moments.
// BatchNormalization is a fused group.
#include <string>
#include <vector>

#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

// Definitions: PARAMETER, the index of scale and shift for an element (row, index), of `channels`;
// HAS_SHIFT. A group computes a row. Two passes avoid cancellation if the mean is far from zero;
// the second one finds the rounding error of the mean, which is the mean of the differences from
// it. These are added up unrounded: their roundings have one sign where many elements have one
// exponent.
constexpr const char* kNormalizationSource = R"(
float combined_sum(float value, __local float *values) {
  const int item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  values[item] = value;
  for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_group) values[item] += values[item + half_group];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return values[0];
}

KERNEL void normalize_rows(__global const uchar *x_base, ulong x_at,
                           __global const uchar *scale_base, ulong scale_at,
                           __global const uchar *shift_base, ulong shift_at,
                           __global uchar *y_base, ulong y_at, int length, int channels,
                           float epsilon) {
  __local float values[GROUP];
  const int row = get_group_id(0);
  const int item = get_local_id(0);
  __global const float *x = AT(const float, x_base, x_at) + row * length;
  __global float *y = AT(float, y_base, y_at) + row * length;
  __global const float *scale = AT(const float, scale_base, scale_at);
  __global const float *shift = AT(const float, shift_base, shift_at);
  float2 sum = 0;
  for (int index = item; index < length; index += GROUP) sum = added(sum, x[index]);
  const float mean = combined_sum(rounded(sum), values) / length;
  float2 differences = 0;
  float2 squares = 0;
  for (int index = item; index < length; index += GROUP) {
    const float difference = x[index] - mean;
    differences = added(added(differences, x[index]), -mean);
    squares = added(squares, difference * difference);
  }
  const float lost = combined_sum(rounded(differences), values) / length;
  const float variance = combined_sum(rounded(squares), values) / length - lost * lost;
  const float inverse = 1.0f / sqrt(fmax(variance, 0.0f) + epsilon);
  for (int index = item; index < length; index += GROUP) {
    float result = ((x[index] - mean) - lost) * inverse * scale[PARAMETER];
#ifdef HAS_SHIFT
    result += shift[PARAMETER];
#endif
    y[index] = result;
  }
}
)";

struct Rows {
  int64_t count = 1;
  int64_t length = 1;
  int64_t channels = 1;
  const char* parameter = "index";
};

void offer_rows(const Offers& offers, const Node& node, const Rows& rows) {
  const bool has_shift = node.input(2).is_present();
  for (size_t index = 0; index < (has_shift ? 3 : 2); ++index) require_floats(node.input(index));
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Place scale = offer.read(node.input(1));
  const Place shift = has_shift ? offer.read(node.input(2)) : scale;
  const Place to = offer.write(node.output(0));
  offer.launch({.definitions = define("PARAMETER", std::string("(") + rows.parameter + ")") +
                               (has_shift ? "#define HAS_SHIFT\n" : ""),
                .source = kNormalizationSource,
                .name = "normalize_rows",
                .arguments = {from, scale, shift, to, narrow(rows.length), narrow(rows.channels),
                              node.attributes().get_float("epsilon", 1e-5F)},
                .groups = rows.count,
                .group_items = kGroupItems});
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

void offer_layer_normalization(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  for (size_t index = 1; index < node.output_count(); ++index) {
    const Value output = node.output(index);
    if (output.is_present() && (output.is_needed() || !output.consumers().empty())) {
      throw Failure(TESSERA_UNSUPPORTED, "does not return the mean of LayerNormalization");
    }
  }
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis", -1), dims.size());
  Rows rows;
  for (size_t index = 0; index < dims.size(); ++index) {
    (index < axis ? rows.count : rows.length) *= dims[index];
  }
  const std::vector<int64_t> row(dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end());
  for (size_t index = 1; index < 3; ++index) {
    const Value parameter = node.input(index);
    if (!parameter.is_present() || parameter.type().dims == row) continue;
    throw Failure(TESSERA_UNSUPPORTED, "scales and shifts by one number for each element of a row");
  }
  offer_rows(offers, node, rows);
}

void offer_instance_normalization(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  const std::vector<int64_t> dims = node.input(0).type().dims;
  if (dims.size() < 3) throw Failure(TESSERA_UNSUPPORTED, "computes three axes or more only");
  Rows rows{.count = dims[0] * dims[1], .channels = dims[1], .parameter = "row % channels"};
  for (size_t index = 2; index < dims.size(); ++index) rows.length *= dims[index];
  offer_rows(offers, node, rows);
}

}  // namespace

void propose_normalizations(const Offers& offers) {
  offers.context().for_each({"LayerNormalization"},
                            [&](const Node& node) { offer_layer_normalization(offers, node); });
  offers.context().for_each({"InstanceNormalization"},
                            [&](const Node& node) { offer_instance_normalization(offers, node); });
}

}  // namespace tessera::opencl
