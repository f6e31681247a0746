#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "ops/schema.h"
#include "rewrite/passes.h"
#include "rewrite/unique_names.h"

namespace tessera {
namespace {

// The branch that an If takes; nullptr if it is no If, or if only the run knows.
const Graph* known_branch(const Graph& graph, const Node& node) {
  if (!is_op(node, "If") || node.inputs.empty() || node.inputs[0].is_none()) return nullptr;
  const Tensor& condition = graph[node.inputs[0]].constant;
  const bool is_known =
      condition.type() == DataType::Bool && condition.has_elements() && condition.elements() == 1;
  if (!is_known) return nullptr;
  const bool is_true = condition.as<uint8_t>()[0] != 0;
  const auto taken =
      std::ranges::find(node.bodies, is_true ? "then_branch" : "else_branch", &Body::attribute);
  return taken == node.bodies.end() ? nullptr : &taken->graph;
}

class BranchInlining {
 public:
  BranchInlining(Graph graph, const PassContext& context)
      : graph_(std::move(graph)), context_(context) {
    for (const Value& value : graph_.values) values_.take(value.name);
    for (const Node& node : graph_.nodes) nodes_.take(node.name);
  }

  Graph run() {
    std::vector<Node> nodes = std::exchange(graph_.nodes, {});
    for (Node& node : nodes) {
      const Graph* const branch = known_branch(graph_, node);
      if (branch == nullptr) {
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      replace(node, *branch);
      context_.changes.push_back(location_of(node) +
                                 " replaced by the branch that its constant condition chooses");
    }
    return std::move(graph_);
  }

 private:
  // The value of graph_ that stands for one of the branch.
  ValueId outer(ValueId inner, const Graph& branch, const std::string& name) {
    if (inner.is_none()) return inner;
    ValueId& known = ids_[static_cast<size_t>(inner.index)];
    if (known.is_none()) {
      Value value = branch[inner];
      value.name = values_.make(value.name, name);
      known = add_value(graph_, std::move(value));
    }
    return known;
  }

  void replace(const Node& node, const Graph& branch) {
    ids_.assign(branch.values.size(), ValueId{});
    for (const Capture& capture : branch.captures) {
      ids_[static_cast<size_t>(capture.inner.index)] = capture.outer;
    }
    const std::vector<NodeId> makers = producers(branch);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const auto inner = static_cast<size_t>(branch.outputs[output].index);
      const bool may_be_made = !node.outputs[output].is_none() && !makers[inner].is_none();
      if (!may_be_made || !ids_[inner].is_none()) continue;
      ids_[inner] = node.outputs[output];
      graph_[node.outputs[output]].type = branch.values[inner].type;
    }
    for (const Node& inner : branch.nodes) {
      Node copy = inner;
      copy.name = nodes_.make(copy.name, node.name);
      for (ValueId& id : copy.inputs) id = outer(id, branch, node.name);
      for (ValueId& id : copy.outputs) id = outer(id, branch, node.name);
      for (Body& body : copy.bodies) {
        for (Capture& capture : body.graph.captures) {
          capture.outer = outer(capture.outer, branch, node.name);
        }
      }
      graph_.nodes.push_back(std::move(copy));
    }
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId made = node.outputs[output];
      if (made.is_none()) continue;
      const ValueId source = outer(branch.outputs[output], branch, node.name);
      if (source != made) add_identity(node, source, made);
    }
  }

  // For an output that the branch does not make: a capture, a constant, or one that is given twice.
  void add_identity(const Node& node, ValueId source, ValueId made) {
    const ops::Op& op = *context_.registry.find("", "Identity");
    Node identity;
    identity.name = nodes_.make(graph_[made].name, node.name);
    identity.op = op.name;
    identity.version = ops::version_in(op, node.version).value_or(op.versions.front());
    identity.inputs = {source};
    identity.outputs = {made};
    graph_[made].type = graph_[source].type;
    graph_.nodes.push_back(std::move(identity));
  }

  Graph graph_;
  const PassContext& context_;
  UniqueNames values_;
  UniqueNames nodes_;
  std::vector<ValueId> ids_;  // by value of the branch; none() if it has none yet
};

bool has_known_branch(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return !node.is_removed && known_branch(graph, node) != nullptr;
  });
}

}  // namespace

Graph inline_branches(Graph graph, const PassContext& context) {
  const Log silent([](const std::string&) {});
  while (has_known_branch(graph)) {
    std::erase_if(graph.nodes, [](const Node& node) { return node.is_removed; });
    graph = BranchInlining(std::move(graph), context).run();
    // What the branch computes may be known now, too, and decide others.
    graph = fold_constants(infer_types(graph, context.registry, silent), context);
  }
  return graph;
}

}  // namespace tessera
