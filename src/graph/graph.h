// The one intermediate representation: nodes and values in vectors, addressed by strong ids.
// verify.h says when a graph is legal; compact.h removes what passes have cut loose.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/attribute.h"
#include "graph/sparse_form.h"
#include "graph/type.h"
#include "tessera/tensor.h"

namespace tessera {

// An index into Graph::nodes or Graph::values of one graph. A default one is "none".
template <class Tag>
struct StrongId {
  int32_t index = -1;
  bool is_none() const { return index < 0; }
  auto operator<=>(const StrongId&) const = default;
};
using NodeId = StrongId<struct NodeTag>;
using ValueId = StrongId<struct ValueTag>;

// A value is made once: by one node, as a graph input, as a constant, or captured from the graph
// around this one.
struct Value {
  std::string name;  // unique in its graph, never empty; the name in the model's file
  Type type;
  Tensor constant;  // the elements, where they are known before running; else is_empty()
  // The elements of a small integer tensor as far as they are known (shape arithmetic). Row-major;
  // its size is the number of elements.
  std::optional<std::vector<Dim>> elements;
  // Kept between runs (running statistics, key/value memory): never folded, never shared.
  bool is_state = false;

  // In which form kernels may take or give it sparsely, once it is bound; see mark_sparse().
  std::optional<SparseForm> sparse;
  // Fed to or given to the caller in that form, as an input or output.
  bool is_exchanged_sparse = false;
  // The elements of a constant that is sparse in the model's file. `constant` then has its type
  // and, where they are few, its elements too; elements_of() gives them in any case.
  std::shared_ptr<const SparseTensor> sparse_constant;

  // Identifies type, dimensions and elements of a constant: packs are found by it, also after the
  // elements were let go. backend/packs.h computes it.
  std::optional<std::array<uint8_t, 32>> digest;

  // Known before running, though its elements may have been let go once every kernel had packed
  // them (then Tensor::has_elements() is false; only ever for large floating-point ones).
  bool is_constant() const { return !constant.is_empty(); }
};

struct Body;

struct Node {
  // Unique in its graph: the model's own name, or the first output's where that is empty or taken.
  std::string name;
  std::string op;      // "Conv"
  std::string domain;  // "" is ONNX's own
  // The version of the op that the model means: the newest one that its operator set contains.
  int version = 0;
  Attributes attributes;
  std::vector<ValueId> inputs;   // none() where an optional input is left out
  std::vector<ValueId> outputs;  // none() where an optional output is not wanted
  std::vector<Body> bodies;      // nested graphs (If, Loop, Scan), by attribute name
  // The model's notes about the node, by key (metadata_props): nothing but pins reads them.
  std::map<std::string, std::string> metadata;
  // Set by passes whose result is right for inference only (e.g. "fold_batch_norm"); else empty.
  std::string inference_only;
  // Set by a pass to cut the node loose; compact() removes it. Never true in a legal graph.
  bool is_removed = false;
};

// A value of the surrounding graph that a nested graph reads, under its own id inside.
struct Capture {
  ValueId outer;
  ValueId inner;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  // in an order in which every value is made before it is used
  std::vector<Value> values;
  std::vector<ValueId> inputs;    // fed when run
  std::vector<ValueId> outputs;   // may repeat, may be inputs or constants
  std::vector<ValueId> kept;      // inner values that somebody wants to fetch: passes keep them
  std::vector<Capture> captures;  // of a nested graph

  Node& operator[](NodeId id) { return nodes[static_cast<size_t>(id.index)]; }
  const Node& operator[](NodeId id) const { return nodes[static_cast<size_t>(id.index)]; }
  Value& operator[](ValueId id) { return values[static_cast<size_t>(id.index)]; }
  const Value& operator[](ValueId id) const { return values[static_cast<size_t>(id.index)]; }
};

struct Body {
  std::string attribute;  // "then_branch"
  Graph graph;
};

// Appends a value and gives its id.
ValueId add_value(Graph& graph, Value value);

// The elements of a constant, dense. Empty of elements where they were let go; throws OutOfMemory
// where a sparse one does not fit into memory.
Tensor elements_of(const Value& value);

// The value called `name`; none() if there is none. Linear in the number of values.
ValueId find_value(const Graph& graph, const std::string& name);

// For each value the node that makes it, or none().
std::vector<NodeId> producers(const Graph& graph);

// For each value, how often it is read: by nodes, by captures of their bodies, as a graph output,
// as a kept value.
std::vector<int> use_counts(const Graph& graph);

// Makes every reader of `from` (nodes, bodies, outputs, kept values) read `to` instead.
void replace_uses(Graph& graph, ValueId from, ValueId to);

// How a node is called in errors and reports: "node 'conv1' (Conv)".
std::string place(const Node& node);

}  // namespace tessera
