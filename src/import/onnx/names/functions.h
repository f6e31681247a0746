// Inlines model-local functions before the graph is built: each call is replaced by the nodes of
// the function's body. A Frame resolves names, attributes and operator sets inside a body.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "import/onnx/names/op_lookup.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

struct Frame;

// An attribute and the frame in which names inside it (of a nested graph) are resolved.
struct ResolvedAttribute {
  const onnx::AttributeProto* proto = nullptr;
  const Frame* frame = nullptr;
};

// One call of a function, or the model itself.
struct Frame {
  const onnx::FunctionProto* function = nullptr;  // nullptr: the model itself
  const Frame* caller = nullptr;
  int depth = 0;  // number of enclosing calls
  Opsets opsets;
  std::string prefix;  // of all names inside that are not in `renamed`; "" for the model
  std::unordered_map<std::string, std::string> renamed;  // parameter -> value of the caller
  std::map<std::string, ResolvedAttribute> attributes;   // as given by the caller
  // The metadata of the enclosing calls; inner calls take precedence. Every node inside inherits
  // it.
  std::map<std::string, std::string> metadata;

  // The name in the graph of a value with this name in the file.
  std::string rename(const std::string& name) const;
};

// A node after inlining.
struct PendingNode {
  const onnx::NodeProto* proto = nullptr;
  const Frame* frame = nullptr;
  std::vector<std::string> inputs;  // renamed; "" if omitted
  std::vector<std::string> outputs;
};

// The name of a node in errors: "node 'conv1' (Conv)".
std::string location_of(const onnx::NodeProto& node, const Frame& frame);

// The metadata of the node, and that of the enclosing calls for keys that the node does not have.
std::map<std::string, std::string> metadata_of(const onnx::NodeProto& node, const Frame& frame);

class Functions {
 public:
  // `model` must outlive this object. Throws InvalidModel if two functions have the same name.
  Functions(const onnx::ModelProto& model, Opsets opsets);

  const Frame& model_frame() const { return frames_.front(); }

  // The nodes with all calls replaced recursively. Throws InvalidModel if a function calls itself,
  // or if a call has arguments or results that the function does not have; Unsupported if the
  // result would be unreasonably large.
  std::vector<PendingNode> expand(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                  const Frame& frame);

  // Resolves an attribute: `attribute` itself or, if it refers to a parameter of the function, the
  // caller's argument; nullopt if the caller omits it.
  std::optional<ResolvedAttribute> resolve(const onnx::AttributeProto& attribute,
                                           const Frame& frame, const std::string& where) const;

  // Accounts for copied bytes, because a short file can cause exponentially many copies. Throws
  // Unsupported.
  void charge(size_t bytes);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  const onnx::FunctionProto* find(const onnx::NodeProto& node) const;
  void expand_into(const Nodes& nodes, const Frame& frame, std::vector<PendingNode>& result);
  void expand_call(const onnx::NodeProto& call, const Frame& caller,
                   const onnx::FunctionProto& function, std::vector<PendingNode>& result);
  Frame& enter(const onnx::NodeProto& call, const Frame& caller,
               const onnx::FunctionProto& function);
  void bind_attributes(const onnx::NodeProto& call, Frame& frame, const std::string& where);
  void bind_parameters(const onnx::NodeProto& call, Frame& frame, const std::string& where,
                       std::vector<PendingNode>& result);
  void pass_through(const std::string& input, const std::string& output, const Frame& frame,
                    std::vector<PendingNode>& result);
  void check_results(const onnx::FunctionProto& function) const;
  std::string free_prefix(const onnx::NodeProto& call, const Frame& caller);
  void add_name(std::string name, const Frame& frame);
  void collect_names(const onnx::GraphProto& graph, const Frame& frame);
  void collect_names(const Nodes& nodes, const Frame& frame);

  std::map<Key, const onnx::FunctionProto*> functions_;
  std::deque<Frame> frames_;  // deque: frames point to one another
  std::deque<onnx::NodeProto> made_nodes_;
  std::set<std::string> names_;  // of all values, to keep generated names unique
  std::unordered_map<std::string, int> prefix_attempts_;
  size_t bytes_left_;
};

}  // namespace tessera::onnx_import
