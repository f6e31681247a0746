#include "graph/extract_group.h"

#include <string>
#include <utility>
#include <vector>

#include "tessera/error.h"

namespace tessera {
namespace {

size_t at(ValueId id) { return static_cast<size_t>(id.index); }

class Extraction {
 public:
  Extraction(const Graph& graph, std::span<const NodeId> nodes)
      : graph_(graph),
        is_inside_(graph.nodes.size(), false),
        is_needed_(graph.values.size(), false),
        is_read_inside_(graph.values.size(), false),
        ids_(graph.values.size()) {
    for (const NodeId node : nodes) {
      const bool is_known = node.index >= 0 &&
                            static_cast<size_t>(node.index) < graph.nodes.size() &&
                            !graph[node].is_removed;
      if (!is_known) {
        throw Error(ErrorKind::InvalidArgument, "group",
                    "expected nodes of the graph, found number " + std::to_string(node.index));
      }
      is_inside_[static_cast<size_t>(node.index)] = true;
    }
  }

  Graph run() {
    find_readers();
    group_.name = graph_.name;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      if (is_inside_[index]) add_node(graph_.nodes[index]);
    }
    if (!has_needed_output_) {
      throw Error(ErrorKind::InvalidArgument, "group",
                  "expected an output that is read outside of the group, found none");
    }
    return std::move(group_);
  }

 private:
  // Marks the values that the group reads, and those that are needed outside.
  void find_readers() {
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      const Node& node = graph_.nodes[index];
      if (node.is_removed) continue;
      std::vector<bool>& is_read = is_inside_[index] ? is_read_inside_ : is_needed_;
      for (const ValueId input : node.inputs) {
        if (!input.is_none()) is_read[at(input)] = true;
      }
      for (const Body& body : node.bodies) {
        for (const Capture& capture : body.graph.captures) is_read[at(capture.outer)] = true;
      }
    }
    for (const ValueId output : graph_.outputs) is_needed_[at(output)] = true;
    for (const ValueId kept : graph_.kept) is_needed_[at(kept)] = true;
  }

  void add_node(const Node& node) {
    Node& copy = group_.nodes.emplace_back(node);
    for (ValueId& input : copy.inputs) input = read(input);
    for (Body& body : copy.bodies) {
      for (Capture& capture : body.graph.captures) capture.outer = read(capture.outer);
    }
    for (ValueId& output : copy.outputs) {
      if (output.is_none()) continue;
      const bool is_needed = is_needed_[at(output)];
      const bool is_inner = !is_needed && is_read_inside_[at(output)];
      has_needed_output_ = has_needed_output_ || is_needed;
      output = add(output);
      if (!is_inner) group_.outputs.push_back(output);
    }
  }

  ValueId read(ValueId id) {
    if (id.is_none() || !ids_[at(id)].is_none()) return id.is_none() ? id : ids_[at(id)];
    const ValueId inside = add(id);
    if (!graph_[id].is_constant()) group_.inputs.push_back(inside);
    return inside;
  }

  ValueId add(ValueId id) { return ids_[at(id)] = add_value(group_, graph_[id]); }

  const Graph& graph_;
  std::vector<bool> is_inside_;
  std::vector<bool> is_needed_;
  std::vector<bool> is_read_inside_;
  bool has_needed_output_ = false;
  std::vector<ValueId> ids_;  // value of the graph -> value of the group; none() if not copied yet
  Graph group_;
};

}  // namespace

Graph extract_group(const Graph& graph, std::span<const NodeId> nodes) {
  return Extraction(graph, nodes).run();
}

}  // namespace tessera
