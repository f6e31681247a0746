#include "api/describe/describe.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/dim_names.h"
#include "ops/work.h"

namespace tessera {
namespace {

// Ops that pass an index on unchanged, so that the limit of their output is also that of their
// input.
constexpr std::array<std::string_view, 9> kIndexCarriers = {"Identity", "Cast",      "Reshape",
                                                            "Flatten",  "Squeeze",   "Unsqueeze",
                                                            "Expand",   "Transpose", "Slice"};

bool is_index_carrier(const Node& node) {
  return node.domain.empty() &&
         std::find(kIndexCarriers.begin(), kIndexCarriers.end(), node.op) != kIndexCarriers.end();
}

// The number of elements from which the index of a Gather (input 1) chooses.
std::optional<int64_t> gather_limit(const Graph& graph, const Node& node) {
  const bool is_gather = node.domain.empty() &&
                         (node.op == "Gather" || node.op == "GatherElements") &&
                         node.inputs.size() > 1;
  if (!is_gather) return std::nullopt;
  const auto& shape = graph[node.inputs[0]].type.shape;
  if (!shape || shape->empty()) return std::nullopt;
  const int64_t* given = node.attributes.find_int("axis");
  const auto rank = static_cast<int64_t>(shape->size());
  int64_t axis = given == nullptr ? 0 : *given;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const Dim& dim = (*shape)[static_cast<size_t>(axis)];
  return dim.is_known() ? std::optional(dim.value()) : std::nullopt;
}

// For each value, the smallest limit of all Gathers that it reaches as an index. Nodes are visited
// backwards, so that the limits of all readers are known before the limit of their input.
std::vector<std::optional<int64_t>> index_limits(const Graph& graph) {
  std::vector<std::optional<int64_t>> limits(graph.values.size());
  const auto lower = [&](ValueId id, std::optional<int64_t> limit) {
    auto& current = limits[static_cast<size_t>(id.index)];
    if (limit && (!current || *limit < *current)) current = limit;
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (const auto limit = gather_limit(graph, *node)) lower(node->inputs[1], limit);
    if (is_index_carrier(*node) && !node->inputs.empty() && !node->outputs.empty() &&
        !node->outputs[0].is_none()) {
      lower(node->inputs[0], limits[static_cast<size_t>(node->outputs[0].index)]);
    }
  }
  return limits;
}

NodeDescription describe_node(const Graph& graph, const Node& node, const ops::Registry& registry) {
  return {.name = node.name,
          .op = node.op,
          .domain = node.domain,
          .version = node.version,
          .inputs = describe_values(graph, node.inputs),
          .outputs = describe_values(graph, node.outputs),
          .flops = ops::node_flops(graph, node, registry),
          .bytes = ops::node_bytes(graph, node, registry),
          .inference_only = node.inference_only};
}

// The memory of a constant in bytes.
int64_t stored_bytes(const Value& value) {
  const bool is_sparse_only = value.sparse_constant && !value.constant.has_elements();
  return is_sparse_only ? value.sparse_constant->storage().bytes() : value.constant.bytes();
}

void describe_weights(const Graph& graph, ModelDescription& description) {
  const std::vector<int> uses = use_counts(graph);
  for (size_t index = 0; index < graph.values.size(); ++index) {
    if (!graph.values[index].is_constant() || uses[index] == 0) continue;
    description.weights.push_back(describe_value(graph, {static_cast<int32_t>(index)}));
    description.weight_bytes =
        ops::saturating_add(description.weight_bytes, stored_bytes(graph.values[index]));
  }
}

std::vector<std::string> surviving_values(const LoadedModel& model, const Graph& graph) {
  std::unordered_map<std::string_view, bool> exists;
  for (const Value& value : graph.values) exists.emplace(value.name, true);
  std::vector<std::string> names;
  for (const std::string& name : model.made_values) {
    if (exists.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

ValueDescription describe_value(const Graph& graph, ValueId id) {
  ValueDescription description;
  if (id.is_none()) return description;
  const Value& value = graph[id];
  description.name = value.name;
  const Type& held =
      value.type.kind == Type::Kind::Optional ? value.type.contents.front() : value.type;
  description.type = held.kind == Type::Kind::Sequence ? DataType::Sequence
                     : held.kind == Type::Kind::Map    ? DataType::Map
                     : held.is_tensor()                ? held.element
                                                       : DataType::Undefined;
  description.text = text(value.type);
  if (value.is_io_sparse) description.layout = text(*value.sparse);
  if (!value.io_device.empty()) description.layout += "@" + value.io_device;
  if (value.type.shape) {
    description.shape.emplace();
    for (const Dim& dim : *value.type.shape) {
      description.shape->push_back(dim.is_known() ? Dimension{dim.value(), ""}
                                                  : Dimension{std::nullopt, shown_text(dim)});
    }
  }
  return description;
}

std::vector<ValueDescription> describe_values(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<ValueDescription> descriptions;
  for (const ValueId id : ids) descriptions.push_back(describe_value(graph, id));
  return descriptions;
}

std::vector<ValueDescription> describe_inputs(const Graph& graph) {
  const std::vector<int> uses = use_counts(graph);
  const std::vector<std::optional<int64_t>> limits = index_limits(graph);
  std::vector<ValueDescription> descriptions = describe_values(graph, graph.inputs);
  for (size_t index = 0; index < descriptions.size(); ++index) {
    const auto value = static_cast<size_t>(graph.inputs[index].index);
    descriptions[index].is_read = uses[value] > 0;
    if (is_integer(descriptions[index].type)) descriptions[index].index_limit = limits[value];
  }
  return descriptions;
}

ModelDescription describe_model(const LoadedModel& model, const Graph& graph,
                                const ops::Registry& registry) {
  ModelDescription description;
  description.ir_version = model.source.ir_version;
  description.producer = model.source.producer;
  description.opsets = model.source.opsets;
  description.inputs = describe_inputs(graph);
  description.outputs = describe_values(graph, graph.outputs);
  describe_weights(graph, description);
  description.flops = 0;
  for (const Node& node : graph.nodes) {
    description.nodes.push_back(describe_node(graph, node, registry));
    const std::optional<int64_t> flops = description.nodes.back().flops;
    description.flops = description.flops && flops
                            ? std::optional(ops::saturating_add(*description.flops, *flops))
                            : std::nullopt;
  }
  for (const PassReport& report : model.passes) {
    description.passes.push_back({.name = report.name,
                                  .nodes_before = report.nodes_before,
                                  .nodes_after = report.nodes_after,
                                  .seconds = report.seconds,
                                  .changes = report.changes});
  }
  description.fetchable = surviving_values(model, graph);
  description.peak_bytes = make_schedule(graph).peak_bytes;
  return description;
}

}  // namespace tessera
