#include "export/onnx/file_names.h"

#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/schema.h"

namespace tessera::onnx_export {
namespace {

// The names of a graph and, through `outer`, of the enclosing graphs.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_set<std::string> names;

  bool has(const std::string& name) const {
    return names.contains(name) || (outer != nullptr && outer->has(name));
  }
  // `wanted`, or with "#2", "#3", ... appended if it is taken.
  std::string take(const std::string& wanted) {
    std::string name = wanted;
    for (int number = 2; has(name); ++number) name = wanted + "#" + std::to_string(number);
    names.insert(name);
    return name;
  }
};

class Naming {
 public:
  Naming(const ops::Registry& registry, int opset) : registry_(registry), opset_(opset) {}

  // Captured values already have names.
  void name(Graph& graph, const Scope* outer) const {
    Scope scope = {outer, {}};
    std::unordered_set<int32_t> captured;
    for (const Capture& capture : graph.captures) {
      captured.insert(capture.inner.index);
      scope.names.insert(graph[capture.inner].name);
    }
    for (size_t index = 0; index < graph.values.size(); ++index) {
      if (captured.contains(static_cast<int32_t>(index))) continue;
      graph.values[index].name = scope.take(graph.values[index].name);
    }
    separate_outputs(graph, captured, scope);
    for (Node& node : graph.nodes) {
      trim(node.inputs);
      trim(node.outputs);
      for (Body& body : node.bodies) {
        for (const Capture& capture : body.graph.captures) {
          body.graph[capture.inner].name = graph[capture.outer].name;
          body.graph[capture.inner].type = graph[capture.outer].type;
        }
        name(body.graph, &scope);
      }
    }
  }

 private:
  // A file cannot distinguish trailing omitted inputs or outputs from missing ones.
  static void trim(std::vector<ValueId>& ids) {
    while (!ids.empty() && ids.back().is_none()) ids.pop_back();
  }

  Node identity(std::string name, ValueId from, ValueId to) const {
    Node node;
    node.name = std::move(name);
    node.op = "Identity";
    const ops::Op& op = registry_.of(node);
    node.version = ops::version_in(op, opset_).value_or(op.versions.front());
    node.inputs = {from};
    node.outputs = {to};
    return node;
  }

  void separate_outputs(Graph& graph, const std::unordered_set<int32_t>& captured,
                        Scope& scope) const {
    Scope node_names;
    for (const Node& node : graph.nodes) node_names.names.insert(node.name);
    std::set<ValueId> given;
    for (ValueId& output : graph.outputs) {
      if (given.insert(output).second && !captured.contains(output.index)) continue;
      Value copy;
      copy.name = scope.take(graph[output].name);
      copy.type = graph[output].type;
      std::string name = node_names.take(copy.name);
      const ValueId made = add_value(graph, std::move(copy));
      graph.nodes.push_back(identity(std::move(name), output, made));
      output = made;
    }
  }

  const ops::Registry& registry_;
  int opset_;
};

}  // namespace

Graph with_file_names(const Graph& graph, const ops::Registry& registry, int opset) {
  TESSERA_CHECK(graph.captures.empty(), "a file holds no graph without the one around it");
  Graph named = graph;
  Naming(registry, opset).name(named, nullptr);
  return named;
}

}  // namespace tessera::onnx_export
