#include "export/onnx/export.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/log.h"
#include "export/onnx/model_writer.h"
#include "graph/extract_group.h"
#include "import/onnx/import.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera {
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

// Renames values so that names identify them as ids do here, as a file requires.
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

// Returns an equivalent graph with these properties: a captured value has the same name inside and
// outside; no other value of a nested graph has a name of an enclosing graph; the outputs of a
// graph have distinct names and are made in it. If two outputs are one value, or an output is
// captured, Identity nodes are added. `opset` is the version of ONNX's own domain, for their
// version.
Graph with_file_names(const Graph& graph, const ops::Registry& registry, int opset) {
  TESSERA_CHECK(graph.captures.empty(), "a file holds no graph without the one around it");
  Graph named = graph;
  Naming(registry, opset).name(named, nullptr);
  return named;
}

constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) bytes += value.constant.bytes();
  for (const Node& node : graph.nodes) {
    for (const Body& body : node.bodies) bytes += constant_bytes(body.graph);
  }
  return bytes;
}

void check_size(int64_t bytes) {
  if (bytes <= kMaxBytes) return;
  throw Error(ErrorKind::Unsupported, "export",
              "expected at most 2 GiB (" + std::to_string(kMaxBytes) +
                  " bytes), protobuf's limit, found " + std::to_string(bytes));
}

constexpr int kPreferredOpset = 13;

// The operator sets that fit all nodes seen so far, and the nodes that determined the bounds.
struct Range {
  int first = 1;
  int last = ops::kAnyVersion;
  const Node* first_node = nullptr;
  const Node* last_node = nullptr;
};

// The last operator set for which the node's version is the newest.
int last_opset(const Node& node, const ops::Registry& registry) {
  const ops::Op* op = registry.find(node.domain, node.op);
  if (op == nullptr) return ops::kAnyVersion;
  const auto next = std::ranges::upper_bound(op->versions, node.version);
  const int before_next = next == op->versions.end() ? ops::kAnyVersion : *next - 1;
  return std::min(before_next, op->last_version);
}

[[noreturn]] void fail(const Range& range, const std::string& domain) {
  const auto version = [](const Node& node) {
    return location_of(node) + " of version " + std::to_string(node.version);
  };
  throw Error(ErrorKind::Unsupported, location_of(*range.first_node),
              "an ONNX file has one operator set for each domain, but none of '" +
                  (domain.empty() ? "ai.onnx" : domain) + "' contains both " +
                  version(*range.first_node) + " (in sets from " + std::to_string(range.first) +
                  " on) and " + version(*range.last_node) + " (in sets up to " +
                  std::to_string(range.last) + ")");
}

void narrow(const Graph& graph, const ops::Registry& registry,
            std::map<std::string, Range>& ranges) {
  for (const Node& node : graph.nodes) {
    Range& range = ranges[node.domain];
    if (node.version > range.first || range.first_node == nullptr) {
      range.first = std::max(range.first, node.version);
      range.first_node = &node;
    }
    const int last = last_opset(node, registry);
    if (last < range.last || range.last_node == nullptr) {
      range.last = std::min(range.last, last);
      range.last_node = &node;
    }
    if (range.first > range.last) fail(range, node.domain);
    for (const Body& body : node.bodies) narrow(body.graph, registry, ranges);
  }
}

}  // namespace

std::map<std::string, int> choose_opsets(const Graph& graph, const ops::Registry& registry) {
  std::map<std::string, Range> ranges;
  ranges[""].first = ops::kOldestOpset;
  ranges[""].last = ops::kNewestOpset;
  narrow(graph, registry, ranges);
  std::map<std::string, int> opsets;
  for (const auto& [domain, range] : ranges) {
    opsets[domain] =
        domain.empty() ? std::clamp(kPreferredOpset, range.first, range.last) : range.first;
  }
  return opsets;
}

std::string export_onnx(const Graph& graph, const ops::Registry& registry) {
  // Checked before anything is copied.
  check_size(constant_bytes(graph));
  const std::map<std::string, int> opsets = choose_opsets(graph, registry);
  const Graph named = with_file_names(graph, registry, opsets.at(""));
  std::string bytes;
  {
    const onnx::ModelProto model = onnx_export::write_model(named, opsets);
    check_size(static_cast<int64_t>(model.ByteSizeLong()));
    bytes = model.SerializeAsString();
  }
  const Log silent([](const std::string&) {});
  const ImportedModel read = import_onnx_bytes(bytes, "", registry, silent);
  const std::string difference = onnx_export::explain_difference(named, read.graph);
  if (!difference.empty()) {
    throw Error(ErrorKind::Internal, "export", "what was written reads otherwise: " + difference);
  }
  return bytes;
}

std::string export_group(const Graph& graph, std::span<const NodeId> nodes,
                         const ops::Registry& registry) {
  return export_onnx(extract_group(graph, nodes), registry);
}

std::string export_open_group(const Graph& graph, std::span<const NodeId> nodes,
                              std::span<const ValueId> constants, const ops::Registry& registry) {
  Graph group = extract_group(graph, nodes);
  std::unordered_map<std::string_view, ValueId> by_name;
  for (size_t index = 0; index < group.values.size(); ++index) {
    by_name.emplace(group.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  for (const ValueId constant : constants) {
    const auto found = by_name.find(graph[constant].name);
    if (found == by_name.end() || !group[found->second].is_constant()) {
      throw Error(
          ErrorKind::InvalidArgument, "group",
          "expected constants that its nodes read, found value '" + graph[constant].name + "'");
    }
    Value& value = group[found->second];
    value.constant = {};
    value.sparse_constant = nullptr;
    value.digest.reset();
    value.elements.reset();
    group.inputs.push_back(found->second);
  }
  return export_onnx(group, registry);
}

}  // namespace tessera
