#include <algorithm>
#include <numeric>
#include <utility>

#include "attention/attention.h"
#include "matmul/matmul_problem.h"
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
};

bool is_own_op(const Node& node, const char* op) {
  return node.domain().empty() && node.op() == op;
}

Operand plain_operand(const Value& value) {
  const Sizes dims = value.type().dims;
  return {.value = value, .dims = dims, .strides = plugin::dense_strides(dims), .nodes = {}};
}

Operand factor_of(const Graph& graph, const Value& value, bool reads_through) {
  Operand operand = plain_operand(value);
  // Axis i of the product's factor is this axis of operand.value.
  std::vector<size_t> axes(operand.dims.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  while (reads_through && operand.value.producer() >= 0 &&
         plugin::only_reader(graph, operand.value)) {
    const Node node = graph.node(operand.value.producer());
    if (!is_own_op(node, "Transpose")) break;
    const Sizes order = plugin::transpose_order(node);
    for (size_t& axis : axes) axis = static_cast<size_t>(order[axis]);
    operand.value = node.input(0);
    operand.nodes.push_back(node.id());
  }
  const Sizes own = plugin::dense_strides(operand.value.type().dims);
  for (size_t axis = 0; axis < axes.size(); ++axis) operand.strides[axis] = own[axes[axis]];
  return operand;
}

Operand result_of(const Graph& graph, const Value& value, bool writes_through) {
  Operand operand = plain_operand(value);
  const std::optional<Node> reader = plugin::only_reader(graph, value);
  if (!writes_through || !reader || reader->op() != "Transpose") return operand;
  const Sizes order = plugin::transpose_order(*reader);
  const Sizes own = plugin::dense_strides(reader->output(0).type().dims);
  Sizes strides(own.size());
  for (size_t axis = 0; axis < own.size(); ++axis) {
    strides[static_cast<size_t>(order[axis])] = own[axis];
  }
  // Rows are written as whole vectors.
  if (strides.back() != 1) return operand;
  operand.value = reader->output(0);
  operand.strides = std::move(strides);
  operand.nodes.push_back(reader->id());
  return operand;
}

// The matrices in the last two axes, for batches that broadcast to `batch`.
StridedMatrices matrices_of(const Operand& operand, const Sizes& batch) {
  const size_t rank = operand.dims.size();
  Sizes strides(batch.size(), 0);
  const size_t missing = batch.size() + 2 - rank;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (operand.dims[axis] != 1) strides[missing + axis] = operand.strides[axis];
  }
  return {.offsets = batch_offsets(batch, strides),
          .row_stride = operand.strides[rank - 2],
          .column_stride = operand.strides[rank - 1]};
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
  const std::optional<Node> product = plugin::only_reader(graph, softmax.result);
  if (softmax.is_log || !product || softmax.x.producer() < 0 ||
      !plugin::only_reader(graph, softmax.x)) {
    return std::nullopt;
  }
  const Node scores = graph.node(softmax.x.producer());
  if (!is_product(scores) || !is_product(*product) ||
      product->input(0).id() != softmax.result.id()) {
    return std::nullopt;
  }
  const Sizes full = softmax.x.type().dims;
  const Sizes batch(full.begin(), full.end() - 2);
  const Sizes product_dims = product->output(0).type().dims;
  // The values may have no axes that the scores lack.
  if (product_dims.size() != full.size() ||
      !std::equal(batch.begin(), batch.end(), product_dims.begin())) {
    return std::nullopt;
  }
  const Operand query = factor_of(graph, scores.input(0), with_transposes);
  const Operand key = factor_of(graph, scores.input(1), with_transposes);
  const Operand value = factor_of(graph, product->input(1), with_transposes);
  const Operand result = result_of(graph, product->output(0), with_transposes);
  AttentionGroup group;
  group.problem = {.rows = full[full.size() - 2],
                   .keys = full.back(),
                   .depth = query.dims.back(),
                   .width = value.dims.back(),
                   .query = matrices_of(query, batch),
                   .key = matrices_of(key, batch),
                   .value = matrices_of(value, batch),
                   .result = matrices_of(result, batch),
                   .scale = softmax.scale,
                   .mask = softmax.mask};
  group.nodes = softmax.nodes;
  group.nodes.insert(group.nodes.end(), {scores.id(), product->id()});
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
