#include <algorithm>
#include <numeric>
#include <span>

#include "attention/attention.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

using Sizes = std::vector<int64_t>;

// A factor or the result of a product, in the memory of `value`.
struct Operand {
  Value value;
  AttentionOperand place;
  std::vector<int32_t> nodes = {};  // between `value` and the product
};

bool is_own_op(const Node& node, const char* op) {
  return node.domain().empty() && node.op() == op;
}

// Requires that the rank is at most kMaxScoreRank.
Operand plain_operand(const Value& value) {
  Operand operand = {.value = value, .place = {.rank = value.type().dims.size()}};
  std::iota(operand.place.axes.begin(), operand.place.axes.end(), size_t{0});
  return operand;
}

Operand factor_of(const Graph& graph, const Value& value, bool reads_through) {
  Operand operand = plain_operand(value);
  while (reads_through && operand.value.producer() >= 0 &&
         plugin::only_reader(graph, operand.value)) {
    const Node node = graph.node(operand.value.producer());
    if (!is_own_op(node, "Transpose")) break;
    const Sizes order = plugin::transpose_order(node);
    for (size_t axis = 0; axis < operand.place.rank; ++axis) {
      size_t& own = operand.place.axes[axis];
      own = static_cast<size_t>(order[own]);
    }
    operand.value = node.input(0);
    operand.nodes.push_back(node.id());
  }
  return operand;
}

Operand result_of(const Graph& graph, const Value& value, bool writes_through) {
  Operand operand = plain_operand(value);
  const std::optional<Node> reader = plugin::only_reader(graph, value);
  if (!writes_through || !reader || reader->op() != "Transpose") return operand;
  const Sizes order = plugin::transpose_order(*reader);
  AttentionOperand place = operand.place;
  for (size_t axis = 0; axis < place.rank; ++axis) {
    place.axes[static_cast<size_t>(order[axis])] = axis;
  }
  // Rows are written as whole vectors.
  const Sizes own = plugin::dense_strides(reader->output(0).type().dims);
  if (own[place.axes[place.rank - 1]] != 1) return operand;
  operand.value = reader->output(0);
  operand.place = place;
  operand.nodes.push_back(reader->id());
  return operand;
}

bool is_usable(const Value& value) {
  return value.is_present() && value.type().data_type == TESSERA_FLOAT32 &&
         value.type().is_known() && value.type().dims.size() >= 2;
}

bool is_product(const Node& node) {
  return is_own_op(node, "MatMul") && is_usable(node.input(0)) && is_usable(node.input(1));
}

// Adds the sizes of the values that the group reads and writes.
void add_sizes(const Graph& graph, AttentionGroup& group) {
  const Sizes query = graph.value(group.query).type().dims;
  const Sizes key = graph.value(group.key).type().dims;
  const Sizes value = graph.value(group.value).type().dims;
  const Sizes mask = graph.value(group.mask).type().dims;
  const Sizes result = graph.value(group.result).type().dims;
  const AttentionDims dims = {query, key, value, mask, result};
  group.problem = attention_problem_of(group.form, dims);
  for (const std::span<const int64_t> one : dims.all()) {
    group.dims.insert(group.dims.end(), one.begin(), one.end());
  }
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
  const Sizes product_dims = product->output(0).type().dims;
  // The values may have no axes that the scores lack.
  if (full.size() > kMaxScoreRank || product_dims.size() != full.size() ||
      !std::equal(full.begin(), full.end() - 2, product_dims.begin())) {
    return std::nullopt;
  }
  const Operand query = factor_of(graph, scores.input(0), with_transposes);
  const Operand key = factor_of(graph, scores.input(1), with_transposes);
  const Operand value = factor_of(graph, product->input(1), with_transposes);
  const Operand result = result_of(graph, product->output(0), with_transposes);
  AttentionGroup group;
  group.form = {.query = query.place,
                .key = key.place,
                .value = value.place,
                .result = result.place,
                .scale = softmax.scale};
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
  add_sizes(graph, group);
  return group;
}

}  // namespace tessera::native
