#include "backend/node_reads.h"

#include <algorithm>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "ops/effects.h"
#include "ops/schema.h"

namespace tessera {

NodeReads::NodeReads(size_t node_count, size_t value_count)
    : nodes_(node_count), values_(value_count) {}

void NodeReads::clear() {
  ++round_;
  const std::lock_guard lock(mutex_);
  attributes_.clear();
}

void NodeReads::note_attribute(const tessera_attribute* attribute) {
  if (attribute == nullptr) return;
  const std::lock_guard lock(mutex_);
  attributes_.insert(attribute);
}

void NodeReads::note_value(int32_t value) { mark(values_, value); }

void NodeReads::note_node(int32_t node) { mark(nodes_, node); }

bool NodeReads::has_attribute(const tessera_attribute* attribute) const {
  const std::lock_guard lock(mutex_);
  return attributes_.contains(attribute);
}

void NodeReads::mark(Marks& marks, int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= marks.size()) return;
  marks[static_cast<size_t>(id)].store(round_, std::memory_order_relaxed);
}

bool NodeReads::is_marked(const Marks& marks, int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= marks.size()) return false;
  return marks[static_cast<size_t>(id)].load(std::memory_order_relaxed) == round_;
}

namespace {

bool takes(const Candidate& candidate, ValueId value) {
  return std::ranges::any_of(candidate.inputs,
                             [&](const CandidateInput& port) { return port.value == value; }) ||
         std::ranges::find(candidate.absorbed, value) != candidate.absorbed.end();
}

bool ignores_input(const tessera_graph& graph, const Candidate& candidate, const Node& node,
                   size_t index) {
  const ValueId value = node.inputs[index];
  // A value that is no constant is a port, or comes from another node of the group.
  if (value.is_none() || !graph.graph[value].is_constant()) return false;
  if (graph.reads.has_value(value.index) || takes(candidate, value)) return false;
  return ops::input_has_effect(graph.registry.of(node), node, index);
}

bool is_unread(const tessera_graph& graph, NodeId id, const std::string& attribute) {
  if (graph.has_read(id.index, attribute)) return false;
  const Node& node = graph.graph[id];
  return ops::attribute_has_effect(graph.registry.of(node), node, attribute);
}

std::string explain_node(const tessera_graph& graph, const Candidate& candidate, NodeId id) {
  const Node& node = graph.graph[id];
  for (const auto& [name, value] : node.attributes.all()) {
    if (is_unread(graph, id, name)) {
      return "ignores attribute '" + name + "' of node '" + node.name + "'";
    }
  }
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    if (!ignores_input(graph, candidate, node, index)) continue;
    const ops::Op& op = graph.registry.of(node);
    return "ignores input '" + ops::parameters_of(op.inputs, node.version)[index].name +
           "' of node '" + node.name + "'";
  }
  return "";
}

}  // namespace

std::vector<std::string> unread_attributes(const tessera_graph& graph, NodeId id) {
  std::vector<std::string> unread;
  for (const auto& [name, value] : graph.graph[id].attributes.all()) {
    if (is_unread(graph, id, name)) unread.push_back(name);
  }
  return unread;
}

std::string explain_unread(const tessera_graph& graph, const Candidate& candidate) {
  for (const NodeId id : candidate.nodes) {
    if (graph.reads.has_node(id.index)) continue;
    std::string reason = explain_node(graph, candidate, id);
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace tessera
