#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/attention.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

using Sizes = std::vector<int64_t>;

// A factor or the result of a product: how it lies in the memory of `value`.
struct Operand {
  Value value;
  Sizes dims;
  Sizes strides;
  std::vector<int32_t> nodes;  // between `value` and the product
  double scale = 1;
};

// Whether `value` is read by one node once and by nobody else.
bool is_read_once(const Value& value) {
  return !value.is_needed() && value.consumers().size() == 1;
}

bool is_own_op(const Node& node, const char* op) {
  return node.domain().empty() && node.op() == op;
}

// The number by which the node multiplies its other input, whose index is stored in `input`.
std::optional<double> scaling_of(const Node& node, size_t& input) {
  const bool is_division = is_own_op(node, "Div");
  if (!is_division && !is_own_op(node, "Mul")) return std::nullopt;
  for (const size_t index : {size_t{1}, size_t{0}}) {
    if (is_division && index == 0) break;
    const std::optional<double> number = plugin::constant_number(node.input(index));
    input = 1 - index;
    // The constant may have more axes.
    if (number && node.input(input).type() == node.output(0).type()) {
      return is_division ? 1 / *number : *number;
    }
  }
  return std::nullopt;
}

// `takes_scaling`: the product can be multiplied by operand.scale.
Operand factor_of(const Graph& graph, const Value& value, bool reads_through, bool takes_scaling) {
  Operand operand = {.value = value,
                     .dims = value.type().dims,
                     .strides = plugin::dense_strides(value.type().dims),
                     .nodes = {}};
  // Axis i of the product's factor is this axis of operand.value.
  std::vector<size_t> axes(operand.dims.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  while (reads_through && operand.value.producer() >= 0 && is_read_once(operand.value)) {
    const Node node = graph.node(operand.value.producer());
    size_t input = 0;
    if (is_own_op(node, "Transpose")) {
      const Sizes order = plugin::transpose_order(node);
      for (size_t& axis : axes) axis = static_cast<size_t>(order[axis]);
    } else if (const auto number = scaling_of(node, input); takes_scaling && number) {
      operand.scale *= *number;
    } else {
      break;
    }
    operand.value = node.input(input);
    operand.nodes.push_back(node.id());
  }
  const Sizes own = plugin::dense_strides(operand.value.type().dims);
  for (size_t axis = 0; axis < axes.size(); ++axis) operand.strides[axis] = own[axes[axis]];
  return operand;
}

Operand result_of(const Graph& graph, const Value& value, bool writes_through) {
  Operand operand = {.value = value,
                     .dims = value.type().dims,
                     .strides = plugin::dense_strides(value.type().dims),
                     .nodes = {}};
  if (!writes_through || !is_read_once(value)) return operand;
  const Node node = graph.node(value.consumers().front());
  if (!is_own_op(node, "Transpose")) return operand;
  const Sizes order = plugin::transpose_order(node);
  const Sizes own = plugin::dense_strides(node.output(0).type().dims);
  Sizes strides(own.size());
  for (size_t axis = 0; axis < own.size(); ++axis) {
    strides[static_cast<size_t>(order[axis])] = own[axis];
  }
  // Rows are written as whole vectors.
  if (strides.back() != 1) return operand;
  operand.value = node.output(0);
  operand.strides = std::move(strides);
  operand.nodes.push_back(node.id());
  return operand;
}

// The matrices in the last two axes, for batches that broadcast to `batch`.
StridedMatrices matrices_of(const Operand& operand, const Sizes& batch) {
  const size_t rank = operand.dims.size();
  StridedMatrices made = {.offsets = {},
                          .row_stride = operand.strides[rank - 2],
                          .column_stride = operand.strides[rank - 1]};
  Sizes strides(batch.size(), 0);
  const size_t missing = batch.size() + 2 - rank;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (operand.dims[axis] != 1) strides[missing + axis] = operand.strides[axis];
  }
  int64_t count = 1;
  for (const int64_t dim : batch) count *= dim;
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index;
    int64_t offset = 0;
    for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis]) {
      offset += rest % batch[axis] * strides[axis];
    }
    made.offsets.push_back(offset);
  }
  return made;
}

bool is_usable(const Value& value) {
  return value.is_present() && value.type().data_type == TESSERA_FLOAT32 &&
         value.type().is_known() && value.type().dims.size() >= 2;
}

bool is_product(const Node& node) {
  return is_own_op(node, "MatMul") && is_usable(node.input(0)) && is_usable(node.input(1));
}

}  // namespace

std::optional<AttentionGroup> attention_around(const Graph& graph, const PreparedSoftmax& softmax,
                                               bool with_transposes) {
  if (softmax.is_log || softmax.x.producer() < 0 || !is_read_once(softmax.x) ||
      !is_read_once(softmax.result)) {
    return std::nullopt;
  }
  const Node scores = graph.node(softmax.x.producer());
  const Node product = graph.node(softmax.result.consumers().front());
  if (!is_product(scores) || !is_product(product) || product.input(0).id() != softmax.result.id() ||
      product.input(1).id() == softmax.result.id()) {
    return std::nullopt;
  }
  const Sizes full = softmax.x.type().dims;
  const Sizes batch(full.begin(), full.end() - 2);
  const Sizes product_dims = product.output(0).type().dims;
  // The values may have no axes that the scores lack.
  if (product_dims.size() != full.size() ||
      !std::equal(batch.begin(), batch.end(), product_dims.begin())) {
    return std::nullopt;
  }
  const Operand query = factor_of(graph, scores.input(0), with_transposes, true);
  const Operand key = factor_of(graph, scores.input(1), with_transposes, true);
  const Operand value = factor_of(graph, product.input(1), with_transposes, false);
  const Operand result = result_of(graph, product.output(0), with_transposes);
  AttentionGroup group;
  group.problem = {.rows = full[full.size() - 2],
                   .keys = full.back(),
                   .depth = query.dims.back(),
                   .width = value.dims.back(),
                   .query = matrices_of(query, batch),
                   .key = matrices_of(key, batch),
                   .value = matrices_of(value, batch),
                   .result = matrices_of(result, batch),
                   .scale = static_cast<float>(softmax.scale * query.scale * key.scale),
                   .mask = softmax.mask};
  group.nodes = softmax.nodes;
  group.nodes.insert(group.nodes.end(), {scores.id(), product.id()});
  for (const Operand* operand : {&query, &key, &value, &result}) {
    group.nodes.insert(group.nodes.end(), operand->nodes.begin(), operand->nodes.end());
  }
  std::sort(group.nodes.begin(), group.nodes.end());
  group.query = query.value.id();
  group.key = key.value.id();
  group.value = value.value.id();
  if (softmax.mask_value) group.mask = softmax.mask_value->id();
  group.result = result.value.id();
  return group;
}

}  // namespace tessera::native
