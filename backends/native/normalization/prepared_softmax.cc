#include "normalization/prepared_softmax.h"

#include <algorithm>
#include <utility>

#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// Before this version, all axes from `axis` on are normalized together.
constexpr int32_t kFirstSingleAxisVersion = 13;

// Whether each row of `full` adds a whole row of `mask`.
bool is_mask_of_rows(const std::vector<int64_t>& mask, const std::vector<int64_t>& full) {
  if (mask.empty() || mask.size() > full.size() || full.size() > kMaxMaskedRank ||
      mask.back() != full.back()) {
    return false;
  }
  const size_t offset = full.size() - mask.size();
  for (size_t axis = 0; axis < mask.size(); ++axis) {
    if (mask[axis] != 1 && mask[axis] != full[offset + axis]) return false;
  }
  return true;
}

// `scaling` and `addition` are nodes, or -1 if absent.
std::optional<PreparedSoftmax> prepared_softmax(const Graph& graph, int32_t scaling,
                                                int32_t addition, int32_t softmax) {
  const std::optional<PreparedSoftmax> plain = plain_softmax(graph.node(softmax));
  if (!plain) return std::nullopt;
  PreparedSoftmax made = *plain;
  const plugin::Type type = made.x.type();
  if (addition >= 0) {
    const Node node = graph.node(addition);
    const int32_t scaled = scaling < 0 ? -1 : graph.node(scaling).output(0).id();
    const bool is_second = scaled >= 0
                               ? node.input(1).id() == scaled
                               : node.input(0).type() != type ||
                                     (node.input(0).is_constant() && node.input(1).type() == type);
    made.x = node.input(is_second ? 1 : 0);
    made.mask_value = node.input(is_second ? 0 : 1);
    const plugin::Type mask = made.mask_value->type();
    if (mask.data_type != TESSERA_FLOAT32 || !is_mask_of_rows(mask.dims, type.dims)) {
      return std::nullopt;
    }
    made.nodes.push_back(addition);
  }
  if (scaling >= 0) {
    const Node node = graph.node(scaling);
    const bool is_second = plugin::constant_number(node.input(0)).has_value();
    const std::optional<double> number = plugin::constant_number(node.input(is_second ? 0 : 1));
    if (!number || (is_second && node.op() == "Div")) return std::nullopt;
    made.scale = static_cast<float>(node.op() == "Div" ? 1 / *number : *number);
    made.x = node.input(is_second ? 1 : 0);
    made.nodes.push_back(scaling);
  }
  if (made.x.type() != type || (made.mask_value && made.mask_value->id() == made.x.id())) {
    return std::nullopt;
  }
  std::sort(made.nodes.begin(), made.nodes.end());
  return made;
}

}  // namespace

SoftmaxAxis softmax_axis_of(const Node& node, size_t rank) {
  const bool is_single = node.version() >= kFirstSingleAxisVersion;
  int64_t axis = node.attributes().get_int("axis", is_single ? -1 : 1);
  if (axis < 0) axis += std::max<int64_t>(1, static_cast<int64_t>(rank));
  return {axis, is_single};
}

SoftmaxRows softmax_rows_of(const SoftmaxAxis& along, std::span<const int64_t> dims) {
  SoftmaxRows rows;
  for (size_t position = 0; position < dims.size(); ++position) {
    const auto here = static_cast<int64_t>(position);
    (here < along.axis                        ? rows.outer
     : here == along.axis || !along.is_single ? rows.length
                                              : rows.inner) *= dims[position];
  }
  return rows;
}

SoftmaxMask softmax_mask_of(std::span<const int64_t> mask, std::span<const int64_t> full) {
  SoftmaxMask made;
  if (full.size() < 2) return made;
  made.rank = full.size() - 2;
  const size_t offset = full.size() - mask.size();
  int64_t stride = mask.back();
  for (size_t axis = full.size() - 1; axis-- > 0;) {
    const int64_t length = axis < offset ? 1 : mask[axis - offset];
    const int64_t step = length == 1 ? 0 : stride;
    (axis == made.rank ? made.run_rows : made.lengths[axis]) = full[axis];
    (axis == made.rank ? made.row_stride : made.strides[axis]) = step;
    stride *= length;
  }
  return made;
}

std::optional<PreparedSoftmax> plain_softmax(const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known() || type.dims.empty()) {
    return std::nullopt;
  }
  PreparedSoftmax made = {.nodes = {node.id()},
                          .x = node.input(0),
                          .mask_value = std::nullopt,
                          .result = node.output(0),
                          .is_log = node.op() == "LogSoftmax",
                          .along = softmax_axis_of(node, type.dims.size()),
                          .scale = 1};
  const SoftmaxRows rows = softmax_rows_of(made.along, type.dims);
  if (rows.inner != 1 || rows.length != type.dims.back()) return std::nullopt;
  return made;
}

std::vector<PreparedSoftmax> find_prepared_softmaxes(const Graph& graph) {
  std::vector<PreparedSoftmax> found;
  const auto keep = [&](int32_t scaling, int32_t addition, int32_t softmax) {
    if (std::optional<PreparedSoftmax> made = prepared_softmax(graph, scaling, addition, softmax)) {
      found.push_back(std::move(*made));
    }
  };
  for (const auto& match : graph.match("s = Mul|Div(_, _); a = Add(s, _); Softmax|LogSoftmax(a)")) {
    keep(match[0], match[1], match[2]);
  }
  for (const auto& match : graph.match("a = Add(_, _); Softmax|LogSoftmax(a)")) {
    keep(-1, match[0], match[1]);
  }
  for (const auto& match : graph.match("s = Mul|Div(_, _); Softmax|LogSoftmax(s)")) {
    keep(match[0], -1, match[1]);
  }
  return found;
}

}  // namespace tessera::native
