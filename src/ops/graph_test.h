// Shared by tests of graph stages: builds graphs by name.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"
#include "graph/attributes_test.h"
#include "graph/graph.h"
#include "graph/verify.h"
#include "ops/all_ops_test.h"
#include "ops/schema.h"

namespace tessera {

// Builds a graph from top to bottom; a value is created when it is first named.
class GraphBuilder {
 public:
  explicit GraphBuilder(const ops::Registry& registry, int opset = 17)
      : registry_(registry), opset_(opset) {}

  GraphBuilder& input(const std::string& name, Type type) {
    graph_.inputs.push_back(declare(name, std::move(type)));
    return *this;
  }

  GraphBuilder& constant(const std::string& name, Tensor tensor) {
    const ValueId id = value(name);
    graph_[id].type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
    graph_[id].constant = std::move(tensor);
    return *this;
  }

  // An empty name is an omitted input or output. The op is of ONNX's own domain, or has its domain
  // before it: "com.microsoft:QLinearAdd".
  GraphBuilder& node(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, Attributes attributes = {}) {
    const size_t colon = op.find(':');
    const std::string domain = colon == std::string::npos ? "" : op.substr(0, colon);
    const ops::Op* found =
        registry_.find(domain, colon == std::string::npos ? op : op.substr(colon + 1));
    if (found == nullptr) {
      ADD_FAILURE() << "no op " << op;
      return *this;
    }
    Node made;
    made.name = name;
    made.op = found->name;
    made.domain = domain;
    made.version = ops::version_in(*found, opset_).value_or(0);
    made.attributes = std::move(attributes);
    for (const std::string& each : inputs) made.inputs.push_back(value(each));
    for (const std::string& each : outputs) made.outputs.push_back(value(each));
    ops::complete(*found, made);
    graph_.nodes.push_back(std::move(made));
    return *this;
  }

  // A node whose output has its name.
  GraphBuilder& node(const std::string& name, const std::string& op,
                     const std::vector<std::string>& inputs, Attributes attributes = {}) {
    return node(name, op, inputs, {name}, std::move(attributes));
  }

  // Reads `outer` of the enclosing graph under the name `name`.
  GraphBuilder& capture(ValueId outer, const std::string& name) {
    graph_.captures.push_back({outer, value(name)});
    return *this;
  }

  GraphBuilder& output(const std::string& name) {
    graph_.outputs.push_back(value(name));
    return *this;
  }

  GraphBuilder& keep(const std::string& name) {
    graph_.kept.push_back(value(name));
    return *this;
  }

  // The type that the model's file declares for a value.
  ValueId declare(const std::string& name, Type type) {
    const ValueId id = value(name);
    graph_[id].type = std::move(type);
    return id;
  }

  ValueId value(const std::string& name) {
    if (name.empty()) return {};
    const auto [entry, is_new] = ids_.try_emplace(name);
    if (is_new) {
      Value made;
      made.name = name;
      entry->second = add_value(graph_, std::move(made));
    }
    return entry->second;
  }

  Graph graph() const {
    EXPECT_EQ(explain_illegal(graph_), "");
    return graph_;
  }

 private:
  const ops::Registry& registry_;
  int opset_;
  Graph graph_;
  std::map<std::string, ValueId> ids_;
};

inline Type float_type(std::optional<Shape> shape = std::nullopt) {
  return Type::tensor(DataType::Float32, std::move(shape));
}

inline const Value& value_of(const Graph& graph, const std::string& name) {
  const ValueId id = find_value(graph, name);
  if (id.is_none()) throw std::out_of_range("no value " + name);
  return graph[id];
}

inline std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

}  // namespace tessera
