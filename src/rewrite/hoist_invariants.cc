#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/registry.h"
#include "rewrite/passes.h"
#include "rewrite/unique_names.h"

namespace tessera {
namespace {

// Ops whose kernels accept all elements of inputs that the type rule accepts.
constexpr uint32_t kTotalTraits = ops::kElementwise | ops::kRowWise | ops::kView | ops::kProduct;

bool may_move(const Graph& body, const Node& node, const ops::Registry& registry) {
  const ops::Op& op = registry.of(node);
  if ((op.traits & ops::kRandom) != 0 || (op.traits & kTotalTraits) == 0) return false;
  if (!node.bodies.empty() || ops::runs_on_values(op, body, node)) return false;
  const auto is_known = [&](ValueId id) {
    return id.is_none() || (body[id].type.is_known_tensor() && !body[id].is_state);
  };
  return std::ranges::all_of(node.inputs, is_known) && std::ranges::all_of(node.outputs, is_known);
}

class Hoisting {
 public:
  Hoisting(Graph graph, const PassContext& context) : graph_(std::move(graph)), context_(context) {
    for (const Value& value : graph_.values) values_.take(value.name);
    for (const Node& node : graph_.nodes) nodes_.take(node.name);
  }

  Graph run() {
    for (Node& node : std::exchange(graph_.nodes, {})) {
      // The nested graphs of an If run at most once.
      if (context_.registry.of(node).body_rule != nullptr) {
        for (Body& body : node.bodies) empty(node, body.graph);
      }
      graph_.nodes.push_back(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  // Moves what does not vary out of `body`, before `loop`, which is not in graph_ yet.
  void empty(const Node& loop, Graph& body) {
    outer_.assign(body.values.size(), ValueId{});
    for (const Capture& capture : body.captures) outer_of(capture.inner) = capture.outer;
    std::string names;
    for (Node& node : body.nodes) {
      if (!is_invariant(body, node) || !may_move(body, node, context_.registry)) continue;
      names += (names.empty() ? "'" : ", '") + node.name + "'";
      move(loop, body, node);
    }
    if (names.empty()) return;
    std::erase_if(body.nodes, [](const Node& node) { return node.is_removed; });
    const std::vector<int> uses = use_counts(body);
    std::erase_if(body.captures, [&](const Capture& capture) {
      return uses[static_cast<size_t>(capture.inner.index)] == 0;
    });
    context_.changes.push_back(location_of(loop) + " no longer computes " + names +
                               " in each iteration");
  }

  ValueId& outer_of(ValueId inner) { return outer_[static_cast<size_t>(inner.index)]; }

  // Whether it reads captures and constants only, and at least one capture: nodes of constants are
  // folded when the nested graph is bound.
  bool is_invariant(const Graph& body, const Node& node) {
    bool reads_capture = false;
    for (const ValueId id : node.inputs) {
      if (id.is_none()) continue;
      const bool is_captured = !outer_of(id).is_none();
      if (!is_captured && !body[id].is_constant()) return false;
      reads_capture = reads_capture || is_captured;
    }
    return reads_capture;
  }

  void move(const Node& loop, Graph& body, Node& node) {
    Node moved = node;
    moved.name = nodes_.make(node.name, loop.name);
    for (ValueId& id : moved.inputs) {
      if (id.is_none()) continue;
      if (outer_of(id).is_none())
        id = add_outer(loop, body, id);
      else
        id = outer_of(id);
    }
    for (ValueId& id : moved.outputs) {
      if (id.is_none()) continue;
      const ValueId inner = id;
      id = outer_of(inner) = add_outer(loop, body, inner);
      body.captures.push_back({.outer = id, .inner = inner});
    }
    node.is_removed = true;
    graph_.nodes.push_back(std::move(moved));
  }

  // A value of graph_ like `inner`: a constant, or one that a moved node makes.
  ValueId add_outer(const Node& loop, const Graph& body, ValueId inner) {
    Value value = body[inner];
    value.name = values_.make(value.name, loop.name);
    return add_value(graph_, std::move(value));
  }

  Graph graph_;
  const PassContext& context_;
  UniqueNames values_;
  UniqueNames nodes_;
  std::vector<ValueId> outer_;  // by value of the nested graph; none() if it is only there
};

}  // namespace

Graph hoist_invariants(Graph graph, const PassContext& context) {
  const bool has_bodies =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return !node.bodies.empty(); });
  if (!has_bodies) return graph;
  std::erase_if(graph.nodes, [](const Node& node) { return node.is_removed; });
  return Hoisting(std::move(graph), context).run();
}

}  // namespace tessera
