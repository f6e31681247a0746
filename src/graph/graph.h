// The intermediate representation: nodes and values in vectors, addressed by strong ids. verify.h
// says when a graph is legal; compact.h removes what passes have detached.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"
#include "graph/sparse_form.h"
#include "graph/type.h"
#include "tessera/tensor.h"

namespace tessera {

// An index into Graph::nodes or Graph::values of one graph. A default-constructed id means "none".
template <class Tag>
struct StrongId {
  int32_t index = -1;
  bool is_none() const { return index < 0; }
  auto operator<=>(const StrongId&) const = default;
};
using NodeId = StrongId<struct NodeTag>;
using ValueId = StrongId<struct ValueTag>;

// A value has exactly one definition: by a node, as a graph input, as a constant, or as a capture
// from the enclosing graph.
struct Value {
  std::string name;  // unique in its graph, never empty; the name in the model's file
  Type type;
  Tensor constant;  // the elements if known before running; else is_empty()
  // The elements of a small integer tensor as far as they are known (shape arithmetic). Row-major,
  // one entry per element.
  std::optional<std::vector<Dim>> elements;
  // The elements of a small tensor of other types, if they follow from sizes that are known; else
  // is_empty(). Only inference with InferOptions::follows_numbers sets it.
  Tensor numbers;
  // Persists between runs (running statistics, key/value memory): never folded, never shared.
  bool is_state = false;

  // The sparse form in which kernels may read or write it after binding; see mark_sparse().
  std::optional<SparseForm> sparse;
  // The caller passes or receives it in that form, as an input or output.
  bool is_io_sparse = false;
  // The device in whose memory the caller passes or receives it, as an input or output; "": that of
  // the host. Set by mark_io_devices() when binding, and not saved with a graph.
  std::string io_device;
  // The elements of a constant that is sparse in the model's file. `constant` then holds the type,
  // and the elements too if they are few; elements_of() gives them in any case.
  std::shared_ptr<const SparseTensor> sparse_constant;

  // Identifies type, dimensions and elements of a constant. Packs are looked up by it even after
  // the elements were released. backend/packs.h computes it.
  std::optional<std::array<uint8_t, 32>> digest;

  // Whether the value is known before running. Its elements may have been released after every
  // kernel had packed them (then Tensor::has_elements() is false); this happens only to large
  // floating-point constants.
  bool is_constant() const { return !constant.is_empty(); }
};

struct Body;

struct Node {
  // Unique in its graph: the model's own name, or the name of the first output if that is empty or
  // taken.
  std::string name;
  std::string op;      // "Conv"
  std::string domain;  // "" is ONNX's own
  // The version of the op that the model means: the newest one in its operator set.
  int version = 0;
  Attributes attributes;
  std::vector<ValueId> inputs;   // none() if an optional input is omitted
  std::vector<ValueId> outputs;  // none() if an optional output is omitted
  std::vector<Body> bodies;      // nested graphs (If, Loop, Scan), by attribute name
  // The model's metadata_props of the node, by key. Only pins read them.
  std::map<std::string, std::string> metadata;
  // The pass (e.g. "fold_batch_norm") whose rewrite is valid for inference only; else empty.
  std::string inference_only;
  // A pass sets this to detach the node; compact() then removes it. Never true in a legal graph.
  bool is_removed = false;
};

// Whether it is this op of ONNX's own domain.
inline bool is_op(const Node& node, std::string_view op) {
  return node.domain.empty() && node.op == op;
}

// A value of the enclosing graph that a nested graph reads, and its id inside.
struct Capture {
  ValueId outer;
  ValueId inner;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  // in an order in which every value is made before it is used
  std::vector<Value> values;
  std::vector<ValueId> inputs;    // fed at run time
  std::vector<ValueId> outputs;   // may repeat, may be inputs or constants
  std::vector<ValueId> kept;      // inner values that the user wants to fetch: passes keep them
  std::vector<Capture> captures;  // only of a nested graph

  Node& operator[](NodeId id) { return nodes[static_cast<size_t>(id.index)]; }
  const Node& operator[](NodeId id) const { return nodes[static_cast<size_t>(id.index)]; }
  Value& operator[](ValueId id) { return values[static_cast<size_t>(id.index)]; }
  const Value& operator[](ValueId id) const { return values[static_cast<size_t>(id.index)]; }
};

struct Body {
  std::string attribute;  // "then_branch"
  Graph graph;
};

// Gives a nested graph of `outer` the constants that it captures, so that they are its own.
void take_captured_constants(const Graph& outer, Graph& body);

// A nested graph that can run alone.
struct ClosedBody {
  Graph graph;                    // its captures are inputs, after its own
  std::vector<ValueId> captured;  // of the enclosing graph, for these
};

ClosedBody close_body(const Graph& body);

// Appends a value and returns its id.
ValueId add_value(Graph& graph, Value value);

// The elements of a constant, dense. The result has no elements if they were released. Throws
// OutOfMemory if a sparse constant does not fit into memory when expanded.
Tensor elements_of(const Value& value);

// The value called `name`; none() if there is none. Linear in the number of values.
ValueId find_value(const Graph& graph, const std::string& name);

// For each value, the node that makes it, or none().
std::vector<NodeId> producers(const Graph& graph);

// For each value, the number of its readers: nodes, captures of their bodies, graph outputs, kept
// values.
std::vector<int> use_counts(const Graph& graph);

// Replaces `from` by `to` in all readers: nodes, bodies, outputs, kept values.
void replace_uses(Graph& graph, ValueId from, ValueId to);

// The name of a node in errors and reports: "node 'conv1' (Conv)".
std::string location_of(const Node& node);

}  // namespace tessera
