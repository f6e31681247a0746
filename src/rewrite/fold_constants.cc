#include "rewrite/passes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "infer/numbers.h"
#include "ops/evaluate.h"
#include "ops/work.h"
#include "tessera/error.h"

namespace tessera {
namespace {

bool is_dequantize(const Node& node) {
  return node.op == "DequantizeLinear" && (node.domain.empty() || node.domain == "com.microsoft");
}

// The nodes that make and read the values of a graph.
class Neighbours {
 public:
  explicit Neighbours(const Graph& graph)
      : producers_(graph.values.size(), nullptr), readers_(graph.values.size()) {
    for (const Node& node : graph.nodes) {
      for (const ValueId id : node.outputs) {
        if (!id.is_none()) producers_[static_cast<size_t>(id.index)] = &node;
      }
      for (const ValueId id : node.inputs) {
        if (!id.is_none()) readers_[static_cast<size_t>(id.index)].push_back(&node);
      }
    }
  }

  const Node* producer(ValueId id) const {
    return id.is_none() ? nullptr : producers_[static_cast<size_t>(id.index)];
  }
  const std::vector<const Node*>& readers(ValueId id) const {
    return readers_[static_cast<size_t>(id.index)];
  }

 private:
  std::vector<const Node*> producers_;             // null: none
  std::vector<std::vector<const Node*>> readers_;  // by value
};

class ConstantFolding {
 public:
  ConstantFolding(Graph graph, const PassContext& context)
      : graph_(std::move(graph)),
        context_(context),
        uses_(use_counts(graph_)),
        neighbours_(graph_),
        is_refined_(graph_.values.size(), false) {}

  Graph run() {
    for (Node& node : graph_.nodes) {
      refine(node);
      for (Body& body : node.bodies) take_captured_constants(graph_, body.graph);
      if (!may_fold(node)) continue;
      std::optional<std::vector<Tensor>> outputs = inferred_outputs(node);
      if (!outputs) outputs = computed_outputs(node);
      if (outputs) replace(node, std::move(*outputs));
    }
    return std::move(graph_);
  }

 private:
  bool may_fold(const Node& node) const {
    const ops::Op& op = context_.registry.of(node);
    if (op.kernel == nullptr || (op.traits & ops::kRandom) != 0 || !node.bodies.empty()) {
      return false;
    }
    if (is_of_region(node)) return false;
    // Strings stay nodes: plans have no memory for constant ones.
    if (ops::runs_on_values(op, graph_, node)) return false;
    const auto is_wanted = [](ValueId id) { return !id.is_none(); };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_wanted)) return false;
    const auto is_free = [&](ValueId id) { return id.is_none() || !graph_[id].is_state; };
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_free) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), is_free);
  }

  // Whether it dequantises weights or a bias of a product whose other factor is dequantised, too:
  // kernels that multiply integers take these nodes together.
  bool is_of_region(const Node& node) const {
    if (!is_dequantize(node) || node.outputs.empty()) return false;
    const std::vector<const Node*>& readers = neighbours_.readers(node.outputs[0]);
    return !readers.empty() && std::ranges::all_of(readers, [&](const Node* reader) {
      return is_product_of_bytes(*reader);
    });
  }

  bool is_product_of_bytes(const Node& node) const {
    constexpr std::array<std::string_view, 3> kProducts = {"Conv", "Gemm", "MatMul"};
    if (!node.domain.empty() || std::ranges::find(kProducts, node.op) == kProducts.end()) {
      return false;
    }
    const auto is_of_bytes = [&](ValueId factor) {
      const Node* const producer = neighbours_.producer(factor);
      if (producer == nullptr || !is_dequantize(*producer)) return false;
      const DataType type = graph_[producer->inputs[0]].type.element;
      return type == DataType::Int8 || type == DataType::UInt8;
    };
    const Node* const left =
        is_of_bytes(node.inputs[0]) ? neighbours_.producer(node.inputs[0]) : nullptr;
    // A product of two constants is folded.
    return left != nullptr && !graph_[left->inputs[0]].is_constant() && is_of_bytes(node.inputs[1]);
  }

  // Infers the types again if folding made more of the inputs known: a size that a model computes
  // with floating-point numbers (padding "same") is known only once they are folded, and the next
  // one may depend on it.
  void refine(const Node& node) {
    const ops::Op& op = context_.registry.of(node);
    const auto is_refined = [&](ValueId id) {
      return !id.is_none() && is_refined_[static_cast<size_t>(id.index)];
    };
    const auto is_open = [&](ValueId id) { return !id.is_none() && !is_settled(graph_[id]); };
    if (op.infer == nullptr || !node.bodies.empty() ||
        std::ranges::none_of(node.inputs, is_refined) ||
        std::ranges::none_of(node.outputs, is_open)) {
      return;
    }
    std::vector<ops::InferInput> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(infer_input(graph_, id));
    try {
      std::vector<ops::InferOutput> outputs = ops::infer(op, node, std::move(inputs));
      for (size_t index = 0; index < node.outputs.size(); ++index) {
        if (!node.outputs[index].is_none()) accept(node.outputs[index], std::move(outputs[index]));
      }
    } catch (const Error& error) {
      // Binding infers all types again, and reports it with the node's name.
      if (error.kind() == ErrorKind::OutOfMemory) throw;
    }
  }

  // Whether inference could find out nothing more about it.
  static bool is_settled(const Value& value) {
    if (value.is_constant()) return true;
    const DataType element = value.type.element;
    const bool may_have_elements = element == DataType::Int32 || element == DataType::Int64;
    const bool has_elements = value.elements && is_known(*value.elements);
    return value.type.is_known_tensor() && (!may_have_elements || has_elements);
  }

  // A type that contradicts the known type, or is impossible, is left to the next inference, which
  // knows the right type and the message. Throws for a size that exceeds 64 bits.
  void accept(ValueId id, ops::InferOutput output) {
    Value& value = graph_[id];
    if (is_settled(value) || !output.type.is_known_tensor()) return;
    const auto is_negative = [](const Dim& dim) { return dim.value() < 0; };
    if (std::ranges::any_of(*output.type.shape, is_negative)) return;
    type_bytes(output.type);
    if (output.type.element != value.type.element) return;
    if (value.type.is_known_tensor() && output.type != value.type) return;
    value.type = std::move(output.type);
    if (output.elements) value.elements = std::move(output.elements);
    is_refined_[static_cast<size_t>(id.index)] = true;
  }

  std::optional<std::vector<Tensor>> inferred_outputs(const Node& node) const {
    std::vector<Tensor> outputs;
    for (const ValueId id : node.outputs) {
      if (id.is_none()) {
        outputs.emplace_back();
        continue;
      }
      std::optional<Tensor> tensor = inferred_tensor(graph_[id]);
      if (!tensor) return std::nullopt;
      outputs.push_back(std::move(*tensor));
    }
    return outputs;
  }

  std::optional<std::vector<Tensor>> computed_outputs(const Node& node) {
    std::vector<Tensor> inputs;
    for (const ValueId id : node.inputs) {
      const bool is_known = id.is_none() || graph_[id].constant.has_elements();
      if (!is_known) return std::nullopt;
      inputs.push_back(id.is_none() ? Tensor() : graph_[id].constant);
    }
    if (const Tensor* value = constant_value(node)) return std::vector<Tensor>{*value};
    if (!is_quick(node)) return std::nullopt;
    try {
      return evaluate(node, inputs);
    } catch (const Error& error) {
      // The node may never be needed; if it is, running it reports the same error.
      if (error.kind() == ErrorKind::InvalidArgument) return std::nullopt;
      throw;
    }
  }

  bool is_quick(const Node& node) const {
    const bool is_product = (context_.registry.of(node).traits & ops::kProduct) != 0;
    try {
      const std::optional<int64_t> flops = ops::node_flops(graph_, node, context_.registry);
      return !flops || *flops <= (is_product ? kMaxFoldedProductFlops : kMaxFoldedFlops);
    } catch (const Error&) {
      return false;  // the number exceeds 64 bits
    }
  }

  // The tensor of a Constant node, shared instead of copied as by its kernel.
  static const Tensor* constant_value(const Node& node) {
    const bool is_constant = node.domain.empty() && node.op == "Constant";
    return is_constant && node.outputs.size() == 1 ? node.attributes.find_tensor("value") : nullptr;
  }

  std::optional<std::vector<Tensor>> evaluate(const Node& node, const std::vector<Tensor>& inputs) {
    const ops::Op& op = context_.registry.of(node);
    std::vector<ops::InferInput> known;
    for (const Tensor& input : inputs) known.push_back(ops::infer_input(input));
    const std::vector<ops::InferOutput> inferred = ops::infer(op, node, std::move(known));
    if (!has_room_for(node, inputs, inferred)) return std::nullopt;
    std::vector<Tensor> outputs(node.outputs.size());
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      const Type& type = inferred[index].type;
      outputs[index] = Tensor(type.element, dims_from(*type.shape));
    }
    ops::run_kernel(op, node, inputs, outputs, context_.pool);
    return outputs;
  }

  // Checks the size before any allocation. Also false if a type is unknown.
  bool has_room_for(const Node& node, const std::vector<Tensor>& inputs,
                    const std::vector<ops::InferOutput>& outputs) {
    int64_t input_bytes = 0;
    for (const Tensor& input : inputs) input_bytes += input.bytes();
    const int64_t limit = std::max(kMaxGrownBytes, input_bytes);
    int64_t left = limit;
    for (size_t index = 0; index < node.outputs.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      const std::optional<int64_t> bytes = type_bytes(outputs[index].type);
      if (!bytes || *bytes > left) return false;
      left -= *bytes;
    }
    const int64_t grown = std::max<int64_t>(0, limit - left - input_bytes);
    if (grown > kMaxGrownBytesTogether - grown_bytes_) return false;
    grown_bytes_ += grown;
    return true;
  }

  void replace(Node& node, std::vector<Tensor> outputs) {
    std::string names;
    for (size_t index = 0; index < outputs.size(); ++index) {
      if (node.outputs[index].is_none()) continue;
      Value& value = graph_[node.outputs[index]];
      value.type = Type::tensor(outputs[index].type(), shape_from(outputs[index].dims()));
      value.constant = std::move(outputs[index]);
      is_refined_[static_cast<size_t>(node.outputs[index].index)] = true;
      names += (names.empty() ? "'" : ", '") + value.name + "'";
    }
    node.is_removed = true;
    context_.changes.push_back(location_of(node) + " folded into constant " + names);
    for (const ValueId id : node.inputs) {
      // Releases constants that are no longer used, so that a chain of folded nodes on a large
      // weight does not hold every intermediate.
      if (!id.is_none() && --uses_[static_cast<size_t>(id.index)] == 0) graph_[id].constant = {};
    }
  }

  Graph graph_;
  const PassContext& context_;
  std::vector<int> uses_;
  Neighbours neighbours_;
  std::vector<bool> is_refined_;  // by value: whether folding found out more about it
  int64_t grown_bytes_ = 0;
};

}  // namespace

Graph fold_constants(Graph graph, const PassContext& context) {
  return ConstantFolding(std::move(graph), context).run();
}

}  // namespace tessera
