#include "rewrite/passes.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "ops/visit_type.h"

namespace tessera {
namespace {

constexpr int kFirstWithoutIsTest = 7;
constexpr int kFirstWithTrainingMode = 14;

// Indices of BatchNormalization's inputs.
constexpr size_t kScale = 1;
constexpr size_t kShift = 2;
constexpr size_t kMean = 3;
constexpr size_t kVariance = 4;

int64_t int_or(const Node& node, const char* name, int64_t otherwise) {
  const int64_t* value = node.attributes.find_int(name);
  return value != nullptr ? *value : otherwise;
}

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.elements()));
  ops::visit_floating(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : tensor.as<T>()) {
      values.push_back(static_cast<double>(static_cast<ops::compute_t<T>>(value)));
    }
  });
  return values;
}

// `source` with its elements in groups of equal size, one per factor, multiplied by the factor and
// shifted. Empty if a result is not finite in the type of `source`.
Tensor scaled(const Tensor& source, const std::vector<double>& factors,
              const std::vector<double>& shifts) {
  Tensor target(source.type(), source.dims());
  bool is_finite = true;
  ops::visit_floating(source.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Compute = ops::compute_t<T>;
    const auto from = source.as<T>();
    const auto to = target.mutable_as<T>();
    const size_t group = from.size() / factors.size();
    for (size_t index = 0; index < from.size(); ++index) {
      const double value = static_cast<double>(static_cast<Compute>(from[index]));
      const size_t channel = index / group;
      to[index] = T(static_cast<Compute>(value * factors[channel] + shifts[channel]));
      is_finite = is_finite && std::isfinite(static_cast<Compute>(to[index]));
    }
  });
  return is_finite ? target : Tensor();
}

class BatchNormFolding {
 public:
  explicit BatchNormFolding(Graph graph)
      : graph_(std::move(graph)), uses_(use_counts(graph_)), producers_(producers(graph_)) {
    for (const Value& value : graph_.values) names_.insert(value.name);
  }

  Graph run(const PassContext& context) {
    for (Node& norm : graph_.nodes) {
      Node* conv = foldable_conv(norm);
      if (conv == nullptr || !fold(*conv, norm)) continue;
      context.changes.push_back(location_of(norm) + " folded into " + location_of(*conv));
    }
    return std::move(graph_);
  }

 private:
  // The Conv whose result only `norm` reads, if all other conditions for folding hold too; else
  // nullptr.
  Node* foldable_conv(const Node& norm) {
    if (!is_op(norm, "BatchNormalization") || !is_inference(norm)) return nullptr;
    const ValueId between = norm.inputs[0];
    if (uses_[static_cast<size_t>(between.index)] != 1) return nullptr;
    const NodeId maker = producers_[static_cast<size_t>(between.index)];
    if (maker.is_none() || !is_op(graph_[maker], "Conv")) return nullptr;
    Node& conv = graph_[maker];
    const Tensor* weights = constant_input(conv, 1);
    if (weights == nullptr || weights->rank() < 1 || weights->elements() == 0) return nullptr;
    const std::vector<int64_t> channels = {weights->dims()[0]};
    for (const size_t index : {kScale, kShift, kMean, kVariance}) {
      const Tensor* each = constant_input(norm, index);
      if (each == nullptr || each->dims() != channels) return nullptr;
    }
    if (has_bias(conv)) {
      const Tensor* bias = constant_input(conv, 2);
      if (bias == nullptr || bias->dims() != channels) return nullptr;
    }
    return &conv;
  }

  bool is_inference(const Node& norm) const {
    if (norm.outputs.empty() || norm.outputs[0].is_none()) return false;
    for (size_t index = 1; index < norm.outputs.size(); ++index) {
      if (!norm.outputs[index].is_none()) return false;
    }
    if (norm.version < kFirstWithoutIsTest && int_or(norm, "is_test", 0) == 0) return false;
    if (norm.version >= kFirstWithTrainingMode && int_or(norm, "training_mode", 0) != 0) {
      return false;
    }
    // Old versions may have statistics per element instead of per channel.
    return int_or(norm, "spatial", 1) != 0 && !graph_[norm.outputs[0]].is_state;
  }

  // The constant of floating type at this input; nullptr if there is none.
  const Tensor* constant_input(const Node& node, size_t index) const {
    if (index >= node.inputs.size() || node.inputs[index].is_none()) return nullptr;
    const Value& value = graph_[node.inputs[index]];
    const bool is_usable = value.is_constant() && value.constant.has_elements() &&
                           !value.is_state && is_floating(value.constant.type());
    return is_usable ? &value.constant : nullptr;
  }

  static bool has_bias(const Node& conv) {
    return conv.inputs.size() > 2 && !conv.inputs[2].is_none();
  }

  bool fold(Node& conv, Node& norm) {
    const Tensor& weights = *constant_input(conv, 1);
    const auto channels = static_cast<size_t>(weights.dims()[0]);
    std::vector<double> factors = doubles_of(*constant_input(norm, kScale));
    std::vector<double> shifts = doubles_of(*constant_input(norm, kShift));
    const std::vector<double> means = doubles_of(*constant_input(norm, kMean));
    const std::vector<double> variances = doubles_of(*constant_input(norm, kVariance));
    const auto epsilon = static_cast<double>(norm.attributes.get_float("epsilon"));
    for (size_t channel = 0; channel < channels; ++channel) {
      factors[channel] /= std::sqrt(variances[channel] + epsilon);
      shifts[channel] -= means[channel] * factors[channel];
    }
    Tensor bias = has_bias(conv) ? *constant_input(conv, 2) : zeros(weights.type(), channels);
    bias = scaled(bias, factors, shifts);
    const Tensor folded = scaled(weights, factors, std::vector<double>(channels, 0));
    if (bias.is_empty() || folded.is_empty()) return false;
    connect(conv, norm, folded, bias);
    return true;
  }

  static Tensor zeros(DataType type, size_t count) {
    Tensor tensor(type, {static_cast<int64_t>(count)});
    std::fill_n(static_cast<char*>(tensor.mutable_data()), tensor.bytes(), char{0});
    return tensor;
  }

  void connect(Node& conv, Node& norm, const Tensor& weights, const Tensor& bias) {
    const std::string base = graph_[conv.inputs[1]].name;
    conv.inputs.resize(3);
    conv.inputs[1] = add_constant(base + "_folded", weights);
    conv.inputs[2] = add_constant(base + "_folded_bias", bias);
    conv.outputs[0] = norm.outputs[0];
    conv.inference_only = "fold_batch_norm";
    conv.metadata.insert(norm.metadata.begin(), norm.metadata.end());
    producers_[static_cast<size_t>(norm.outputs[0].index)] =
        producers_[static_cast<size_t>(norm.inputs[0].index)];
    norm.is_removed = true;
  }

  ValueId add_constant(const std::string& wanted, const Tensor& tensor) {
    Value value;
    value.name = wanted;
    for (int number = 2; !names_.insert(value.name).second; ++number) {
      value.name = wanted + "_" + std::to_string(number);
    }
    value.type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
    value.constant = tensor;
    return add_value(graph_, std::move(value));
  }

  Graph graph_;
  std::vector<int> uses_;
  std::vector<NodeId> producers_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Graph fold_batch_norm(Graph graph, const PassContext& context) {
  const bool has_any = std::ranges::any_of(
      graph.nodes, [](const Node& node) { return is_op(node, "BatchNormalization"); });
  return has_any ? BatchNormFolding(std::move(graph)).run(context) : graph;
}

}  // namespace tessera
