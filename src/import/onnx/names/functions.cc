#include "import/onnx/names/functions.h"

#include <algorithm>
#include <utility>

#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

// The limit of all inlined copies together: about two hundred thousand nodes.
constexpr size_t kMaxCopiedBytes = size_t{256} << 20;
constexpr size_t kBytesOfNode = 1024;
constexpr size_t kBytesOfEntry = 128;  // of a map of strings
constexpr int kMaxNestedCalls = 100;

std::string location_of(const onnx::FunctionProto& function) {
  return "function '" + function.name() + "'";
}

std::string own_name(const onnx::NodeProto& node, const Frame& frame) {
  if (!node.name().empty()) return frame.prefix + node.name();
  for (const std::string& output : node.output()) {
    if (!output.empty()) return frame.rename(output);
  }
  return frame.prefix + node.op_type();
}

// `caller` is inside `function`, directly or indirectly.
[[noreturn]] void fail_recursion(const onnx::FunctionProto& function, const Frame& caller,
                                 const std::string& where) {
  std::string chain = "'" + function.name() + "'";
  const Frame* frame = &caller;
  for (; frame->function != &function; frame = frame->caller) {
    chain = "'" + frame->function->name() + "' -> " + chain;
  }
  throw Error(ErrorKind::InvalidModel, where,
              "a function calls itself: '" + function.name() + "' -> " + chain);
}

size_t bytes_of(const std::map<std::string, std::string>& metadata) {
  size_t bytes = 0;
  for (const auto& [key, value] : metadata) bytes += kBytesOfEntry + key.size() + value.size();
  return bytes;
}

bool contains(const google::protobuf::RepeatedPtrField<std::string>& names,
              const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string Frame::rename(const std::string& name) const {
  if (name.empty()) return name;
  const auto found = renamed.find(name);
  return found == renamed.end() ? prefix + name : found->second;
}

std::string location_of(const onnx::NodeProto& node, const Frame& frame) {
  return "node '" + own_name(node, frame) + "' (" + node.op_type() + ")";
}

std::map<std::string, std::string> metadata_of(const onnx::NodeProto& node, const Frame& frame) {
  std::map<std::string, std::string> metadata;
  for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
    metadata[entry.key()] = entry.value();
  }
  metadata.insert(frame.metadata.begin(), frame.metadata.end());
  return metadata;
}

Functions::Functions(const onnx::ModelProto& model, Opsets opsets) : bytes_left_(kMaxCopiedBytes) {
  Frame& frame = frames_.emplace_back();
  frame.opsets = std::move(opsets);
  for (const onnx::FunctionProto& function : model.functions()) {
    Key key(normalized_domain(function.domain()), function.name(), function.overload());
    if (!functions_.emplace(std::move(key), &function).second) {
      throw Error(ErrorKind::InvalidModel, location_of(function), "the model has two of this name");
    }
  }
  if (!functions_.empty()) collect_names(model.graph(), frame);
}

void Functions::charge(size_t bytes) {
  if (bytes > bytes_left_) {
    throw Error(ErrorKind::Unsupported, "functions of the model",
                "calls replaced by their bodies give a graph that is too large");
  }
  bytes_left_ -= bytes;
}

const onnx::FunctionProto* Functions::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found =
      functions_.find(Key(normalized_domain(node.domain()), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

std::optional<ResolvedAttribute> Functions::resolve(const onnx::AttributeProto& attribute,
                                                    const Frame& frame,
                                                    const std::string& where) const {
  if (attribute.ref_attr_name().empty()) return ResolvedAttribute{&attribute, &frame};
  if (frame.function == nullptr) {
    throw Error(ErrorKind::InvalidModel, where,
                "refers to attribute '" + attribute.ref_attr_name() +
                    "' of a function, but is not inside a function");
  }
  const auto given = frame.attributes.find(attribute.ref_attr_name());
  if (given != frame.attributes.end()) return given->second;
  if (!contains(frame.function->attribute(), attribute.ref_attr_name())) {
    throw Error(
        ErrorKind::InvalidModel, where,
        location_of(*frame.function) + " has no attribute '" + attribute.ref_attr_name() + "'");
  }
  return std::nullopt;
}

std::vector<PendingNode> Functions::expand(const Nodes& nodes, const Frame& frame) {
  std::vector<PendingNode> result;
  expand_into(nodes, frame, result);
  return result;
}

void Functions::expand_into(const Nodes& nodes, const Frame& frame,
                            std::vector<PendingNode>& result) {
  for (const onnx::NodeProto& node : nodes) {
    if (const onnx::FunctionProto* function = find(node)) {
      expand_call(node, frame, *function, result);
      continue;
    }
    if (frame.function != nullptr) {
      const auto names =
          static_cast<size_t>(node.input_size()) + static_cast<size_t>(node.output_size());
      charge(kBytesOfNode + node.ByteSizeLong() + names * frame.prefix.size() +
             bytes_of(frame.metadata));
    }
    PendingNode& pending = result.emplace_back();
    pending.proto = &node;
    pending.frame = &frame;
    for (const std::string& name : node.input()) pending.inputs.push_back(frame.rename(name));
    for (const std::string& name : node.output()) pending.outputs.push_back(frame.rename(name));
  }
}

void Functions::expand_call(const onnx::NodeProto& call, const Frame& caller,
                            const onnx::FunctionProto& function, std::vector<PendingNode>& result) {
  const std::string where = location_of(call, caller);
  for (const Frame* frame = &caller; frame->function != nullptr; frame = frame->caller) {
    if (frame->function == &function) fail_recursion(function, caller, where);
  }
  if (caller.depth >= kMaxNestedCalls) {
    throw Error(ErrorKind::Unsupported, where,
                "expected functions that call one another at most " +
                    std::to_string(kMaxNestedCalls) + " deep, found more");
  }
  charge(kBytesOfNode + call.ByteSizeLong() + function.ByteSizeLong());
  check_results(function);
  Frame& frame = enter(call, caller, function);
  bind_attributes(call, frame, where);
  bind_parameters(call, frame, where, result);
  collect_names(function.node(), frame);
  expand_into(function.node(), frame, result);
}

Frame& Functions::enter(const onnx::NodeProto& call, const Frame& caller,
                        const onnx::FunctionProto& function) {
  std::string prefix = free_prefix(call, caller);
  Frame& frame = frames_.emplace_back();
  frame.function = &function;
  frame.caller = &caller;
  frame.depth = caller.depth + 1;
  frame.opsets = read_opsets(function.opset_import(), location_of(function));
  // For domains that it does not import.
  frame.opsets.insert(frames_.front().opsets.begin(), frames_.front().opsets.end());
  frame.prefix = std::move(prefix);
  frame.metadata = metadata_of(call, caller);
  charge(bytes_of(frame.metadata));
  return frame;
}

void Functions::bind_attributes(const onnx::NodeProto& call, Frame& frame,
                                const std::string& where) {
  const onnx::FunctionProto& function = *frame.function;
  for (const onnx::AttributeProto& attribute : function.attribute_proto()) {
    frame.attributes[attribute.name()] = {&attribute, &frame};
  }
  std::set<std::string> given;
  for (const onnx::AttributeProto& attribute : call.attribute()) {
    const std::string place_of_it = where + ", attribute '" + attribute.name() + "'";
    const bool is_known = contains(function.attribute(), attribute.name()) ||
                          frame.attributes.contains(attribute.name());
    if (!is_known) {
      throw Error(ErrorKind::InvalidModel, place_of_it,
                  location_of(function) + " has no such attribute");
    }
    if (!given.insert(attribute.name()).second) {
      throw Error(ErrorKind::InvalidModel, place_of_it, "is given twice");
    }
    const auto resolved = resolve(attribute, *frame.caller, place_of_it);
    if (resolved) frame.attributes[attribute.name()] = *resolved;
  }
}

void Functions::bind_parameters(const onnx::NodeProto& call, Frame& frame, const std::string& where,
                                std::vector<PendingNode>& result) {
  const onnx::FunctionProto& function = *frame.function;
  const auto check_count = [&](int given, int known, const char* kind) {
    if (given <= known) return;
    throw Error(ErrorKind::InvalidModel, where,
                location_of(function) + " has " + std::to_string(known) + " " + kind + ", found " +
                    std::to_string(given));
  };
  check_count(call.input_size(), function.input_size(), "inputs");
  check_count(call.output_size(), function.output_size(), "outputs");
  for (int index = 0; index < function.input_size(); ++index) {
    const std::string value =
        index < call.input_size() ? frame.caller->rename(call.input(index)) : std::string();
    if (!frame.renamed.emplace(function.input(index), value).second) {
      throw Error(ErrorKind::InvalidModel, location_of(function),
                  "has two inputs called '" + function.input(index) + "'");
    }
  }
  for (int index = 0; index < call.output_size(); ++index) {
    const std::string& inside = function.output(index);
    if (call.output(index).empty()) continue;
    const std::string outside = frame.caller->rename(call.output(index));
    if (contains(function.input(), inside)) {
      pass_through(frame.renamed[inside], outside, frame, result);
    } else if (!frame.renamed.emplace(inside, outside).second) {
      throw Error(ErrorKind::InvalidModel, location_of(function),
                  "has two outputs called '" + inside + "'");
    }
  }
}

void Functions::pass_through(const std::string& input, const std::string& output,
                             const Frame& frame, std::vector<PendingNode>& result) {
  onnx::NodeProto& node = made_nodes_.emplace_back();
  node.set_op_type("Identity");
  result.push_back({&node, &frame, {input}, {output}});
}

void Functions::check_results(const onnx::FunctionProto& function) const {
  std::set<std::string_view> made(function.input().begin(), function.input().end());
  for (const onnx::NodeProto& node : function.node()) {
    made.insert(node.output().begin(), node.output().end());
  }
  for (const std::string& output : function.output()) {
    if (output.empty() || !made.contains(output)) {
      throw Error(ErrorKind::InvalidModel, location_of(function),
                  "no node makes its output '" + output + "'");
    }
  }
}

std::string Functions::free_prefix(const onnx::NodeProto& call, const Frame& caller) {
  const std::string base = own_name(call, caller);
  for (int& attempt = prefix_attempts_[base];;) {
    ++attempt;
    std::string prefix = base + (attempt == 1 ? "" : "#" + std::to_string(attempt)) + "/";
    const auto next = names_.lower_bound(prefix);
    const bool is_taken = next != names_.end() && next->starts_with(prefix);
    if (!is_taken) {
      names_.insert(prefix);
      return prefix;
    }
  }
}

void Functions::collect_names(const onnx::GraphProto& graph, const Frame& frame) {
  for (const auto& input : graph.input()) add_name(frame.rename(input.name()), frame);
  for (const auto& initializer : graph.initializer()) {
    add_name(frame.rename(initializer.name()), frame);
  }
  collect_names(graph.node(), frame);
}

void Functions::add_name(std::string name, const Frame& frame) {
  if (frame.function != nullptr) charge(name.size() + sizeof(std::string));
  names_.insert(std::move(name));
}

void Functions::collect_names(const Nodes& nodes, const Frame& frame) {
  for (const onnx::NodeProto& node : nodes) {
    for (const std::string& output : node.output()) add_name(frame.rename(output), frame);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) collect_names(attribute.g(), frame);
    }
  }
}

}  // namespace tessera::onnx_import
