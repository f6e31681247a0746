#include "rewrite/passes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/visit_type.h"

namespace tessera {
namespace {

constexpr int kFirstInputVersion = 11;

// Indices of Pad's inputs.
constexpr size_t kPads = 1;
constexpr size_t kValue = 2;
constexpr size_t kAxes = 3;

// Axes of images and channels, before the spatial ones.
constexpr size_t kOuterAxes = 2;

// The largest pad that a Conv may have.
constexpr int64_t kMaxPad = INT32_MAX;

std::string string_or(const Node& node, const char* name, const char* otherwise) {
  const std::string* value = node.attributes.find_string(name);
  return value != nullptr ? *value : otherwise;
}

bool has_input(const Node& node, size_t index) {
  return index < node.inputs.size() && !node.inputs[index].is_none();
}

// The constant at this input; nullptr if it is none.
const Tensor* constant_input(const Graph& graph, const Node& node, size_t index) {
  const Value& value = graph[node.inputs[index]];
  const bool is_usable = value.is_constant() && value.constant.has_elements() && !value.is_state;
  return is_usable ? &value.constant : nullptr;
}

std::optional<std::vector<int64_t>> integers(const Tensor& tensor) {
  if (tensor.type() == DataType::Int64) {
    const auto elements = tensor.as<int64_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  if (tensor.type() == DataType::Int32) {
    const auto elements = tensor.as<int32_t>();
    return std::vector<int64_t>(elements.begin(), elements.end());
  }
  return std::nullopt;
}

bool pads_with_zeros(const Graph& graph, const Node& pad) {
  if (string_or(pad, "mode", "constant") != "constant") return false;
  if (pad.version < kFirstInputVersion) {
    const float* value = pad.attributes.find_float("value");
    return value == nullptr || *value == 0;
  }
  if (!has_input(pad, kValue)) return true;
  const Tensor* value = constant_input(graph, pad, kValue);
  if (value == nullptr || value->elements() != 1 || !is_floating(value->type())) return false;
  bool is_zero = false;
  ops::visit_floating(value->type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    is_zero = static_cast<ops::compute_t<T>>(value->as<T>()[0]) == 0;
  });
  return is_zero;
}

// The pads at the beginnings of all axes, then those at the ends; nullopt if they are not known.
std::optional<std::vector<int64_t>> pads_of(const Graph& graph, const Node& pad, size_t rank) {
  if (pad.version < kFirstInputVersion) {
    const std::vector<int64_t>* pads = pad.attributes.find_ints("pads");
    if (pads == nullptr || pads->size() != 2 * rank) return std::nullopt;
    return *pads;
  }
  if (!has_input(pad, kPads)) return std::nullopt;
  const Tensor* tensor = constant_input(graph, pad, kPads);
  std::optional<std::vector<int64_t>> pads = tensor ? integers(*tensor) : std::nullopt;
  if (!pads) return std::nullopt;
  if (!has_input(pad, kAxes)) return pads->size() == 2 * rank ? pads : std::nullopt;
  tensor = constant_input(graph, pad, kAxes);
  const std::optional<std::vector<int64_t>> axes = tensor ? integers(*tensor) : std::nullopt;
  if (!axes || pads->size() != 2 * axes->size()) return std::nullopt;
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t index = 0; index < axes->size(); ++index) {
    const auto count = static_cast<int64_t>(rank);
    const int64_t axis = (*axes)[index] < 0 ? (*axes)[index] + count : (*axes)[index];
    if (axis < 0 || axis >= count) return std::nullopt;
    all[static_cast<size_t>(axis)] = (*pads)[index];
    all[rank + static_cast<size_t>(axis)] = (*pads)[index + axes->size()];
  }
  return all;
}

// The pads of the Conv together with those of the Pad before it; nullopt if it cannot have them.
std::optional<std::vector<int64_t>> joined_pads(const Graph& graph, const Node& pad,
                                                const Node& conv) {
  const Type& type = graph[pad.inputs[0]].type;
  if (!type.shape || type.shape->size() <= kOuterAxes) return std::nullopt;
  const size_t rank = type.shape->size();
  const size_t spatial = rank - kOuterAxes;
  const std::optional<std::vector<int64_t>> outer = pads_of(graph, pad, rank);
  if (!outer) return std::nullopt;
  std::vector<int64_t> joined(2 * spatial, 0);
  const std::string auto_pad = string_or(conv, "auto_pad", "NOTSET");
  if (auto_pad == "NOTSET") {
    const std::vector<int64_t>* own = conv.attributes.find_ints("pads");
    if (own != nullptr && own->size() != joined.size()) return std::nullopt;
    if (own != nullptr) joined = *own;
  } else if (auto_pad != "VALID") {
    return std::nullopt;
  }
  for (size_t index = 0; index < 2 * rank; ++index) {
    const int64_t added = (*outer)[index];
    const size_t axis = index % rank;
    if (axis < kOuterAxes && added != 0) return std::nullopt;
    if (axis < kOuterAxes) continue;
    int64_t& sum = joined[index / rank * spatial + axis - kOuterAxes];
    if (added < 0 || added > kMaxPad || sum < 0 || sum > kMaxPad - added) return std::nullopt;
    sum += added;
  }
  return joined;
}

}  // namespace

Graph fold_pads(Graph graph, const PassContext& context) {
  const std::vector<NodeId> makers = producers(graph);
  for (Node& conv : graph.nodes) {
    if (!is_op(conv, "Conv") || !has_input(conv, 0)) continue;
    const NodeId maker = makers[static_cast<size_t>(conv.inputs[0].index)];
    if (maker.is_none()) continue;
    const Node& pad = graph[maker];
    if (!is_op(pad, "Pad") || !has_input(pad, 0) || !pads_with_zeros(graph, pad)) continue;
    std::optional<std::vector<int64_t>> pads = joined_pads(graph, pad, conv);
    if (!pads) continue;
    conv.attributes.set("pads", *std::move(pads));
    conv.attributes.set("auto_pad", std::string("NOTSET"));
    conv.inputs[0] = pad.inputs[0];
    context.changes.push_back(location_of(pad) + " folded into " + location_of(conv));
  }
  return graph;
}

}  // namespace tessera
