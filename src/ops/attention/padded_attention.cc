#include "ops/attention/padded_attention.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/check_shape.h"
#include "ops/convert_elements.h"

namespace tessera::ops {

// --- Type rules ----------------------------------------------------------------------------------

int64_t required_heads(const InferContext& context, const char* attribute) {
  const int64_t heads = head_count(context, attribute);
  if (heads == 0) {
    context.fail("expected the attribute '" + std::string(attribute) + "', found none");
  }
  return heads;
}

void check_padding_mask(const InferContext& context, size_t index, const ScoreDims& dims) {
  const Shape* shape = context.has_input(index) ? context.shape(index) : nullptr;
  if (shape == nullptr) return;
  const Dim twice = multiply(dims.batch, 2);
  const std::array<Shape, 6> legal = {
      Shape{dims.batch},
      Shape{twice},
      Shape{add(multiply(dims.batch, 3), 2)},
      Shape{dims.batch, dims.keys},
      Shape{dims.batch, 1},
      Shape{dims.batch, dims.queries, dims.keys},
  };
  if (std::ranges::any_of(legal, [&](const Shape& one) { return can_be_equal(*shape, one); })) {
    return;
  }
  context.fail_input(index, "expected shape [" + text(legal[0]) + "], [" + text(legal[1]) + "], [" +
                                text(legal[2]) + "], [" + text(legal[3]) + "] or [" +
                                text(legal[5]) + "], found [" + text(*shape) + "]");
}

void check_score_bias(const InferContext& context, size_t index, const ScoreDims& dims) {
  const Shape* shape = shape_of_rank(context, index, 4, "batch, heads, queries, keys");
  if (shape == nullptr) return;
  check_broadcast_to(context, index, {dims.batch, dims.heads, dims.queries, dims.keys}, false);
  check_dim(context, index, 2, dims.queries);
  check_dim(context, index, 3, dims.keys);
}

// --- Kernels -------------------------------------------------------------------------------------

void ScoreBias::add_to(const ScoreRow& row) const {
  if (tensor == nullptr) return;
  const auto dims = tensor->dims;
  const int64_t b = dims[0] == 1 ? 0 : row.batch;
  const int64_t h = dims[1] == 1 ? 0 : row.head;
  const int64_t place = ((b * dims[1] + h) * dims[2] + row.query) * dims[3];
  const char* source = static_cast<const char*>(tensor->data) + place * element_bytes(tensor->type);
  std::array<double, kConvertBlock> biases;
  for (size_t begin = 0; begin < row.scores.size(); begin += biases.size()) {
    const size_t count = std::min(biases.size(), row.scores.size() - begin);
    convert_elements(tensor->type,
                     source + static_cast<int64_t>(begin) * element_bytes(tensor->type),
                     DataType::Float64, biases.data(), static_cast<int64_t>(count));
    for (size_t index = 0; index < count; ++index) row.scores[begin + index] += biases[index];
  }
}

void PaddingMask::add_to(const ScoreRow& row) const {
  if (tensor == nullptr) return;
  const auto dims = tensor->dims;
  const auto keys = static_cast<int64_t>(row.scores.size());
  const auto* numbers = static_cast<const int32_t*>(tensor->data);
  if (dims.size() == 1) {
    const int64_t end = std::clamp<int64_t>(numbers[row.batch], 0, keys);
    const int64_t start =
        starts == 0 ? 0 : std::clamp<int64_t>(numbers[starts + row.batch], 0, keys);
    for (int64_t key = 0; key < keys; ++key) {
      if (key < start || key >= end) row.scores[static_cast<size_t>(key)] += filter;
    }
    return;
  }
  if (dims.size() == 2 && dims[1] != keys) return;  // [batch, 1]
  const int64_t line = dims.size() == 2 ? row.batch : row.batch * dims[1] + row.query;
  for (int64_t key = 0; key < keys; ++key) {
    if (numbers[line * keys + key] <= 0) row.scores[static_cast<size_t>(key)] += filter;
  }
}

void PaddedAttention::weigh(const ScoreRow& row) const {
  mask.add_to(row);
  bias.add_to(row);
  if (is_causal) {
    const size_t seen = static_cast<size_t>(past + row.query + 1);
    // As in ONNX Runtime: the smallest number, not -infinity.
    constexpr double kUnseen = std::numeric_limits<float>::lowest();
    for (size_t key = seen; key < row.scores.size(); ++key) row.scores[key] = kUnseen;
  }
  if (scores != nullptr) store_row(row, *scores);
  softmax_in_place(row.scores);
}

PaddedAttention padded_attention(const KernelCall& call, size_t mask, size_t bias) {
  PaddedAttention attention;
  const auto given = [&](size_t index) {
    return call.has_input(index) ? &call.inputs[index] : nullptr;
  };
  attention.mask.tensor = given(mask);
  const float* filter = call.node.attributes.find_float("mask_filter_value");
  attention.mask.filter = filter == nullptr ? -10000.0 : double{*filter};
  if (attention.mask.tensor != nullptr && attention.mask.tensor->rank() == 1) {
    const int64_t batch = call.outputs[0].dims[0];
    if (attention.mask.tensor->elements == 2 * batch) attention.mask.starts = batch;
  }
  attention.bias.tensor = given(bias);
  const int64_t* is_causal = call.node.attributes.find_int("unidirectional");
  attention.is_causal = is_causal != nullptr && *is_causal != 0;
  return attention;
}

double scale_or_default(const Node& node, int64_t head_size) {
  const float* scale = node.attributes.find_float("scale");
  return scale == nullptr || *scale == 0 ? default_scale(head_size) : double{*scale};
}

}  // namespace tessera::ops
