#include "import/onnx/graph_builder.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/attribute.h"
#include "import/onnx/names/scope.h"
#include "import/onnx/names/used_names.h"
#include "import/onnx/tensors.h"
#include "import/onnx/types.h"
#include "import/onnx/upgrade/insertions.h"
#include "import/onnx/upgrade/upgrade.h"
#include "import/onnx/wire/wire_scan.h"
#include "ops/control_flow/bodies.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

using onnx::AttributeProto;

// The declared kind of the attribute or, if the file declares none, the kind of the field that is
// set. Throws InvalidModel at `where` if that is ambiguous.
AttributeProto::AttributeType attribute_type(const AttributeProto& proto,
                                             const std::string& where) {
  if (proto.has_type() && proto.type() != AttributeProto::UNDEFINED) return proto.type();
  const std::pair<bool, AttributeProto::AttributeType> candidates[] = {
      {proto.has_f(), AttributeProto::FLOAT},
      {proto.has_i(), AttributeProto::INT},
      {proto.has_s(), AttributeProto::STRING},
      {proto.has_t(), AttributeProto::TENSOR},
      {proto.has_g(), AttributeProto::GRAPH},
      {proto.has_tp(), AttributeProto::TYPE_PROTO},
      {proto.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR},
      {proto.floats_size() > 0, AttributeProto::FLOATS},
      {proto.ints_size() > 0, AttributeProto::INTS},
      {proto.strings_size() > 0, AttributeProto::STRINGS},
      {proto.tensors_size() > 0, AttributeProto::TENSORS},
  };
  AttributeProto::AttributeType found = AttributeProto::UNDEFINED;
  for (const auto& [is_given, type] : candidates) {
    if (!is_given) continue;
    if (found != AttributeProto::UNDEFINED) {
      throw Error(ErrorKind::InvalidModel, where, "expected one value, found several");
    }
    found = type;
  }
  if (found == AttributeProto::UNDEFINED) {
    throw Error(ErrorKind::InvalidModel, where, "expected a value, found none");
  }
  return found;
}

std::vector<Tensor> read_tensors(const AttributeProto& proto, TensorReader& tensors,
                                 const std::string& where) {
  std::vector<Tensor> list;
  for (const onnx::TensorProto& tensor : proto.tensors()) {
    list.push_back(tensors.read(tensor, where + "[" + std::to_string(list.size()) + "]"));
  }
  return list;
}

// Reads an attribute of any kind except nested graphs. Throws Unsupported for sparse tensors and
// lists of types, and what TensorReader::read() throws.
Attribute read_attribute(const AttributeProto& proto, TensorReader& tensors,
                         const std::string& where) {
  switch (attribute_type(proto, where)) {
    case AttributeProto::FLOAT:
      return proto.f();
    case AttributeProto::INT:
      return proto.i();
    case AttributeProto::STRING:
      return proto.s();
    case AttributeProto::FLOATS:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    case AttributeProto::TENSOR:
      if (!proto.has_t()) {
        throw Error(ErrorKind::InvalidModel, where, "expected a tensor, found none");
      }
      return tensors.read(proto.t(), where);
    case AttributeProto::TENSORS:
      return read_tensors(proto, tensors, where);
    case AttributeProto::TYPE_PROTO: {
      DimNames names;
      return type_of(proto.tp(), where, where, names);
    }
    case AttributeProto::GRAPHS:
      throw Error(ErrorKind::Unsupported, where, "lists of graphs are not supported");
    case AttributeProto::SPARSE_TENSOR:
    case AttributeProto::SPARSE_TENSORS:
      throw Error(ErrorKind::Unsupported, where, "sparse tensors are not supported");
    case AttributeProto::TYPE_PROTOS:
      throw Error(ErrorKind::Unsupported, where, "lists of types are not supported");
    default:
      throw Error(ErrorKind::InvalidModel, where, "expected a value, found a nested graph");
  }
}

// Gives every node of a graph a unique name. Assigns names in the order of the calls.
class NodeNamer {
 public:
  // The node's own name. If it has none or the name is taken, that of its first output; if that is
  // taken too, the same with "#2", "#3", ... appended.
  std::string choose(const PendingNode& node) {
    std::string own = node.proto->name();
    if (!own.empty()) own = node.frame->prefix + own;
    if (!own.empty() && taken_.insert(own).second) return own;
    const auto output = std::find_if(node.outputs.begin(), node.outputs.end(),
                                     [](const std::string& name) { return !name.empty(); });
    std::string base = output != node.outputs.end() ? *output
                       : own.empty()                ? node.proto->op_type()
                                                    : own;
    return choose(std::move(base));
  }

  // `base`, with a number appended if it is taken.
  std::string choose(std::string base) {
    if (!base.empty() && taken_.insert(base).second) return base;
    int& count = counts_.try_emplace(base, 1).first->second;
    while (true) {
      std::string numbered = base + "#" + std::to_string(++count);
      if (taken_.insert(numbered).second) return numbered;
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> counts_;
};

// Through attributes of functions, graphs may nest deeper than they do in the file.
void check_depth(int depth) {
  if (depth <= kMaxNestedGraphs) return;
  throw Error(ErrorKind::InvalidModel, "nested graphs",
              "expected at most " + std::to_string(kMaxNestedGraphs) +
                  " graphs inside one another, found more once functions are inlined");
}

// Of the outputs of a nested graph that is not inferred yet; see ops::declared_type_name().
void keep_declared_types(const Body& body, Attributes& attributes) {
  for (size_t output = 0; output < body.graph.outputs.size(); ++output) {
    const Value& value = body.graph[body.graph.outputs[output]];
    if (value.is_constant() || !value.type.is_tensor() || !value.type.shape) continue;
    Shape sizes;
    for (const Dim& dim : *value.type.shape) {
      sizes.push_back(dim.is_known() ? dim : Dim::symbol("?"));
    }
    if (std::ranges::none_of(sizes, &Dim::is_known)) continue;
    attributes.set(ops::declared_type_name(body.attribute, output),
                   Type::tensor(value.type.element, std::move(sizes)));
  }
}

void trim(std::vector<ValueId>& ids) {
  while (!ids.empty() && ids.back().is_none()) ids.pop_back();
}

// A graph that is being built.
struct Building {
  Graph& graph;
  Scope& scope;
  NodeNamer& namer;
  Insertions& insertions;
};

class GraphBuilder {
 public:
  GraphBuilder(Functions& functions, TensorReader& tensors, const ops::Registry& registry,
               const Log& log, const std::set<std::string>& free_inputs)
      : functions_(functions),
        tensors_(tensors),
        registry_(registry),
        log_(log),
        free_inputs_(free_inputs) {}

  Graph build(const GraphSite& site) {
    check_depth(site.depth);
    Graph graph;
    graph.name = site.proto.name();
    Scope scope(graph, site.outer);
    const DeclaredTypes declared(site, dim_names_, log_);
    NodeNamer namer;
    Insertions insertions(graph, registry_,
                          [&](const std::string& name) { return namer.choose(name); });
    add_constants(site, declared, namer, graph, scope);
    add_inputs(site, declared, graph, scope);
    add_nodes(site, declared, {graph, scope, namer, insertions});
    for (const auto& output : site.proto.output()) {
      const std::string name = site.frame.rename(output.name());
      const ValueId id = name.empty() ? ValueId{} : scope.find(name);
      if (id.is_none()) {
        throw Error(ErrorKind::InvalidModel, site.where + "graph output '" + name + "'",
                    "expected a value that a node, an input or an initializer makes, found none");
      }
      graph.outputs.push_back(id);
    }
    insertions.name_values([&](const std::string& name) { return scope.has(name); });
    return graph;
  }

 private:
  bool is_free(const GraphSite& site, const std::string& name) const {
    const bool is_models_own = site.outer == nullptr;
    return is_models_own && free_inputs_.contains(name);
  }

  // Leaves out those that nothing reads: they may be of types that this build lacks, or in files
  // that are gone.
  void add_constants(const GraphSite& site, const DeclaredTypes& declared, NodeNamer& namer,
                     Graph& graph, Scope& scope) {
    std::unordered_set<std::string_view> used = used_names(site.proto);
    for (const auto& input : site.proto.input()) used.insert(input.name());
    for (const onnx::SparseTensorProto& proto : site.proto.sparse_initializer()) {
      Value value;
      value.name = site.frame.rename(proto.values().name());
      if (is_free(site, value.name)) continue;
      const std::string where = site.where + "sparse initializer '" + value.name + "'";
      if (value.name.empty()) throw Error(ErrorKind::InvalidModel, where, "it has no name");
      if (!used.contains(proto.values().name())) continue;
      read_sparse(proto, tensors_, where, value);
      declared.check_constant(value.name, value.type);
      scope.make_own(std::move(value), "a sparse initializer");
    }
    for (const onnx::TensorProto& proto : site.proto.initializer()) {
      Value value;
      value.name = site.frame.rename(proto.name());
      if (is_free(site, value.name)) continue;
      const std::string where = site.where + "initializer '" + value.name + "'";
      if (value.name.empty()) throw Error(ErrorKind::InvalidModel, where, "it has no name");
      if (!used.contains(proto.name())) continue;
      Tensor constant = tensors_.read(proto, where);
      value.type = Type::tensor(constant.type(), shape_from(constant.dims()));
      declared.check_constant(value.name, value.type);
      if (constant.is_strings()) {
        add_constant_node(std::move(constant), std::move(value), namer, graph, scope);
        continue;
      }
      value.constant = std::move(constant);
      scope.make_own(std::move(value), "an initializer");
    }
  }

  // Strings are made by a node: plans have memory for the elements of constants, and strings have
  // memory of their own.
  static void add_constant_node(Tensor strings, Value value, NodeNamer& namer, Graph& graph,
                                Scope& scope) {
    Node node;
    node.name = namer.choose(value.name);
    node.op = "Constant";
    node.version = 1;
    node.attributes.set("value", std::move(strings));
    node.outputs = {scope.make_own(std::move(value), "an initializer")};
    graph.nodes.push_back(std::move(node));
  }

  void add_inputs(const GraphSite& site, const DeclaredTypes& declared, Graph& graph,
                  Scope& scope) {
    const size_t constant_count = graph.values.size();
    std::unordered_set<std::string> overridden;
    for (const onnx::ValueInfoProto& input : site.proto.input()) {
      Value value;
      value.name = site.frame.rename(input.name());
      const std::string where = site.where + "graph input '" + value.name + "'";
      if (value.name.empty()) throw Error(ErrorKind::InvalidModel, where, "it has no name");
      value.type = declared.input_type(input, where);
      const ValueId constant = scope.has(value.name) ? scope.find(value.name) : ValueId{};
      const bool is_constant =
          !constant.is_none() && static_cast<size_t>(constant.index) < constant_count;
      if (is_constant && overridden.insert(value.name).second) {
        check_input_constant(value.type, graph[constant].type, where);
        continue;
      }
      graph.inputs.push_back(scope.make_own(std::move(value), "a graph input"));
    }
  }

  void add_nodes(const GraphSite& site, const DeclaredTypes& declared, const Building& building) {
    const std::vector<PendingNode> pending = functions_.expand(site.proto.node(), site.frame);
    std::vector<NodeNames> names;
    for (const PendingNode& node : pending) {
      NodeNames& entry = names.emplace_back();
      entry.made = node.outputs;
      std::vector<std::string> read = node.inputs;
      add_names_read_inside(*node.proto, *node.frame, site.depth, read);
      std::copy_if(read.begin(), read.end(), std::back_inserter(entry.read),
                   [&](const std::string& name) { return !building.scope.has(name); });
    }
    const Order order = order_nodes(names);
    if (!order.cycle.empty()) fail_cycle(pending, order.cycle);
    for (const size_t index : order.nodes) {
      add_node(site, declared, pending[index], building);
    }
  }

  // Appends the names that the nested graphs of `node` capture.
  void add_names_read_inside(const onnx::NodeProto& node, const Frame& frame, int depth,
                             std::vector<std::string>& read) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      const auto resolved = resolve(attribute, frame, location_of(node, frame));
      if (resolved && resolved->proto->has_g()) {
        add_free_names(resolved->proto->g(), *resolved->frame, depth + 1, read);
      }
    }
  }

  void add_free_names(const onnx::GraphProto& graph, const Frame& frame, int depth,
                      std::vector<std::string>& result) {
    check_depth(depth);
    std::unordered_set<std::string> own;
    std::vector<std::string> read;
    for (const auto& input : graph.input()) own.insert(frame.rename(input.name()));
    for (const auto& constant : graph.initializer()) own.insert(frame.rename(constant.name()));
    for (const auto& constant : graph.sparse_initializer()) {
      own.insert(frame.rename(constant.values().name()));
    }
    for (const onnx::NodeProto& node : graph.node()) {
      for (const std::string& input : node.input()) read.push_back(frame.rename(input));
      for (const std::string& output : node.output()) own.insert(frame.rename(output));
      add_names_read_inside(node, frame, depth, read);
    }
    for (const auto& output : graph.output()) read.push_back(frame.rename(output.name()));
    std::copy_if(read.begin(), read.end(), std::back_inserter(result),
                 [&](const std::string& name) { return !own.contains(name); });
  }

  std::optional<ResolvedAttribute> resolve(const onnx::AttributeProto& attribute,
                                           const Frame& frame, const std::string& node_location) {
    const auto resolved = functions_.resolve(
        attribute, frame, node_location + ", attribute '" + attribute.name() + "'");
    const bool is_copy = resolved && resolved->proto != &attribute;
    if (is_copy) functions_.charge(sizeof(Attribute) + resolved->proto->ByteSizeLong());
    return resolved;
  }

  [[noreturn]] static void fail_cycle(const std::vector<PendingNode>& pending,
                                      const std::vector<size_t>& cycle) {
    constexpr size_t kMaxShown = 8;
    std::string text;
    for (size_t index = 0; index < std::min(cycle.size(), kMaxShown); ++index) {
      const PendingNode& node = pending[cycle[index]];
      text += location_of(*node.proto, *node.frame) + " -> ";
    }
    if (cycle.size() > kMaxShown) text += "... -> ";
    const PendingNode& first = pending[cycle.front()];
    const std::string first_place = location_of(*first.proto, *first.frame);
    throw Error(ErrorKind::InvalidModel, first_place,
                "expected a graph without cycles, found " + text + first_place);
  }

  void add_node(const GraphSite& site, const DeclaredTypes& declared, const PendingNode& pending,
                const Building& building) {
    Scope& scope = building.scope;
    Node node;
    node.name = building.namer.choose(pending);
    node.op = pending.proto->op_type();
    node.domain = normalized_domain(pending.proto->domain());
    node.metadata = metadata_of(*pending.proto, *pending.frame);
    const FoundOp found = find_op(registry_, pending.frame->opsets, node, log_);
    std::optional<ops::Op> definition;
    if (found.old != nullptr) definition = definition_of(*found.old, registry_);
    const ops::Op& op = definition ? *definition : *found.stated;
    for (const std::string& name : pending.inputs) {
      node.inputs.push_back(name.empty() ? ValueId{} : scope.find(name));
      if (node.inputs.back().is_none() && !name.empty()) {
        throw Error(ErrorKind::InvalidModel,
                    site.where + ops::input_location(op, node, node.inputs.size() - 1),
                    "expected the name of a value, found '" + name +
                        "', which is no input, constant or output of a node");
      }
    }
    trim(node.inputs);
    if (add_sparse_constant(site, declared, pending, node, scope)) return;
    add_attributes(site, op, pending, node, scope);
    for (const std::string& name : pending.outputs) {
      if (name.empty()) {
        node.outputs.push_back({});
        continue;
      }
      Value value;
      value.name = name;
      value.type = declared.inner_type(name);
      node.outputs.push_back(scope.make(std::move(value), location_of(node)));
    }
    trim(node.outputs);
    with_place(site, [&] {
      ops::complete(op, node);
      if (found.old != nullptr) upgrade(*found.old, node, found.opset, building.insertions);
    });
    for (const Body& body : node.bodies) keep_declared_types(body, node.attributes);
    building.graph.nodes.push_back(std::move(node));
  }

  // Makes the value of a Constant node with a sparse_value, as for a sparse initializer. Returns
  // false for any other node.
  bool add_sparse_constant(const GraphSite& site, const DeclaredTypes& declared,
                           const PendingNode& pending, const Node& node, Scope& scope) {
    constexpr int kFirstSparseVersion = 11;
    const auto& attributes = pending.proto->attribute();
    const bool is_constant = node.domain.empty() && node.op == "Constant";
    if (!is_constant || attributes.size() != 1 || attributes[0].name() != "sparse_value" ||
        node.version < kFirstSparseVersion) {
      return false;
    }
    const std::string node_location = site.where + location_of(node);
    const std::string where = node_location + ", attribute 'sparse_value'";
    const auto resolved = resolve(attributes[0], *pending.frame, node_location);
    if (!resolved) return false;
    if (!resolved->proto->has_sparse_tensor() || !node.inputs.empty() ||
        pending.outputs.size() != 1 || pending.outputs[0].empty()) {
      throw Error(ErrorKind::InvalidModel, where,
                  "expected a sparse tensor, no input and one output of the node, found others");
    }
    Value value;
    value.name = pending.outputs[0];
    read_sparse(resolved->proto->sparse_tensor(), tensors_, where, value);
    declared.check_constant(value.name, value.type);
    scope.make(std::move(value), node_location);
    return true;
  }

  void add_attributes(const GraphSite& site, const ops::Op& op, const PendingNode& pending,
                      Node& node, Scope& scope) {
    const std::string node_location = site.where + location_of(node);
    std::unordered_set<std::string> given;
    for (const onnx::AttributeProto& attribute : pending.proto->attribute()) {
      const std::string& name = attribute.name();
      const std::string where = node_location + ", attribute '" + name + "'";
      if (!given.insert(name).second) {
        throw Error(ErrorKind::InvalidModel, where, "is given twice");
      }
      const auto resolved = resolve(attribute, *pending.frame, node_location);
      if (!resolved) continue;
      const auto type = attribute_type(*resolved->proto, where);
      if (type != onnx::AttributeProto::GRAPH) {
        node.attributes.set(name, read_attribute(*resolved->proto, tensors_, where));
        continue;
      }
      if (std::find(op.bodies.begin(), op.bodies.end(), name) == op.bodies.end()) {
        throw Error(ErrorKind::InvalidModel, where, op.name + " has no nested graph of this name");
      }
      const std::string inside = node_location + ", " + name + ", ";
      node.bodies.push_back(
          {name, build({resolved->proto->g(), *resolved->frame, &scope, inside,
                        site.symbols + node.name + "." + name + ".", site.depth + 1})});
    }
    // An op with a reference kernel too has this for nodes that leave out nested graphs.
    const bool may_omit_bodies = op.kernel != nullptr;
    if (node.bodies.size() < op.bodies.size() && !may_omit_bodies) {
      throw Error(ErrorKind::InvalidModel, node_location,
                  op.name + " requires " + std::to_string(op.bodies.size()) +
                      " nested graphs, found " + std::to_string(node.bodies.size()));
    }
  }

  // Calls `action`; errors name the graphs around the node.
  template <class Action>
  static void with_place(const GraphSite& site, const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      throw Error(error.kind(), site.where + error.where(), error.message());
    }
  }

  Functions& functions_;
  TensorReader& tensors_;
  const ops::Registry& registry_;
  const Log& log_;
  const std::set<std::string>& free_inputs_;
  DimNames dim_names_;
};

}  // namespace

Graph build_graph(const onnx::GraphProto& proto, Functions& functions, TensorReader& tensors,
                  const ops::Registry& registry, const Log& log,
                  const std::set<std::string>& free_inputs) {
  GraphBuilder builder(functions, tensors, registry, log, free_inputs);
  return builder.build({proto, functions.model_frame(), nullptr, "", "", 1});
}

}  // namespace tessera::onnx_import
