// Model-local functions: a call is replaced by the nodes of the function's body before the graph is
// built. What names, attributes and operator sets mean inside a body is a Frame.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "import/onnx/op_lookup.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

struct Frame;

// An attribute and where the names inside it (of a nested graph) have their meaning.
struct ResolvedAttribute {
  const onnx::AttributeProto* proto = nullptr;
  const Frame* frame = nullptr;
};

// One call of a function, or the model itself.
struct Frame {
  const onnx::FunctionProto* function = nullptr;  // nullptr: the model itself
  const Frame* caller = nullptr;
  int depth = 0;  // calls around this one
  Opsets opsets;
  std::string prefix;  // of all names inside that are not in `renamed`; "" for the model
  std::unordered_map<std::string, std::string> renamed;  // parameters to the caller's values
  std::map<std::string, ResolvedAttribute> attributes;   // as the caller gives them
  // Of the calls around, the inner ones' before the outer ones'; every node inside has it too.
  std::map<std::string, std::string> metadata;

  // What a value's name in the file is called in the graph.
  std::string rename(const std::string& name) const;
};

// A node as it will stand in the graph.
struct PendingNode {
  const onnx::NodeProto* proto = nullptr;
  const Frame* frame = nullptr;
  std::vector<std::string> inputs;  // renamed; "" where left out
  std::vector<std::string> outputs;
};

// How errors call a node of the file: "node 'conv1' (Conv)".
std::string place(const onnx::NodeProto& node, const Frame& frame);

// The notes of the node itself, and those of the calls around it whose keys it does not have.
std::map<std::string, std::string> metadata_of(const onnx::NodeProto& node, const Frame& frame);

class Functions {
 public:
  // `model` must outlive this. Throws InvalidModel where two functions have one name.
  Functions(const onnx::ModelProto& model, Opsets opsets);

  const Frame& model_frame() const { return frames_.front(); }

  // The nodes with every call replaced, however deep. Throws InvalidModel for a function that calls
  // itself, for arguments it does not have and results it does not make; Unsupported where the
  // result would be larger than any sensible model.
  std::vector<PendingNode> expand(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                  const Frame& frame);

  // The attribute that is meant: `attribute` itself, or what the caller of the function gives where
  // it refers to a parameter; nullopt where the caller leaves that out.
  std::optional<ResolvedAttribute> resolve(const onnx::AttributeProto& attribute,
                                           const Frame& frame, const std::string& where) const;

  // Accounts for work on copies: a short file can call for exponentially many. Throws Unsupported.
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
  std::deque<Frame> frames_;  // frames point at one another
  std::deque<onnx::NodeProto> made_nodes_;
  std::set<std::string> names_;  // of all values, so that no prefix makes one twice
  std::unordered_map<std::string, int> prefix_attempts_;
  size_t bytes_left_;
};

}  // namespace tessera::onnx_import
