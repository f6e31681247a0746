// Products with what follows them, and activations with what precedes them: ops that ONNX Runtime's
// optimiser writes into files.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/domains.h"
#include "rewrite/lower_functions.h"

namespace tessera {
namespace {

// An activation by its name in the attribute "activation", and the parameters that it has, in the
// order of "activation_params" and of "activation_alpha", "..._beta", "..._gamma".
struct NamedActivation {
  std::string_view name;
  std::array<const char*, 2> attributes = {};
};

constexpr NamedActivation kActivations[] = {
    {"Relu"},
    {"Tanh"},
    {"Sigmoid"},
    {"Softplus"},
    {"LeakyRelu", {"alpha"}},
    {"HardSigmoid", {"alpha", "beta"}},
    {"ThresholdedRelu", {"alpha"}},
    {"Elu", {"alpha"}},
    {"HardSwish"},
};

// nullopt if it is none of the above. "" is no activation.
std::optional<ValueId> activated(NodeBuilder& builder, ValueId id, const std::string& name,
                                 const std::vector<float>& parameters) {
  if (name.empty()) return id;
  if (name == "Clip" && parameters.size() == 2) {
    const ValueId least = builder.number(parameters[0], id);
    const ValueId most = builder.number(parameters[1], id);
    return builder.add("Clip", {id, least, most});
  }
  const auto* const found = std::ranges::find(kActivations, name, &NamedActivation::name);
  if (found == std::end(kActivations)) return std::nullopt;
  Attributes attributes;
  for (size_t index = 0; index < parameters.size() && index < found->attributes.size(); ++index) {
    if (found->attributes[index] != nullptr) {
      attributes.set(found->attributes[index], parameters[index]);
    }
  }
  return builder.add(name, {id}, std::move(attributes));
}

std::string activation_of(const Attributes& attributes) {
  const std::string* name = attributes.find_string("activation");
  return name == nullptr ? "" : *name;
}

// "activation_alpha" and the others, as far as they are given.
std::vector<float> named_parameters(const Attributes& attributes) {
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    const float* found = attributes.find_float(name);
    if (found == nullptr) break;
    parameters.push_back(*found);
  }
  return parameters;
}

Attributes selected(const Attributes& from, std::initializer_list<const char*> names) {
  Attributes attributes;
  for (const char* name : names) {
    const auto found = from.all().find(name);
    if (found != from.all().end()) attributes.set(found->first, found->second);
  }
  return attributes;
}

bool write_fused_conv(NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  std::vector<ValueId> inputs = builder.replaced().inputs;
  inputs.resize(std::min<size_t>(inputs.size(), 3));
  while (inputs.back().is_none()) inputs.pop_back();
  ValueId sum = builder.add(
      "Conv", inputs,
      selected(attributes, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (builder.has_input(3)) sum = builder.add("Add", {sum, builder.input(3)});
  const std::vector<float>* given = attributes.find_floats("activation_params");
  const auto result = activated(builder, sum, activation_of(attributes),
                                given == nullptr ? std::vector<float>() : *given);
  if (result) builder.give(0, *result);
  return result.has_value();
}

// `id` with its axes in another order: the last two changed, or, with `moves_batch`, its first axis
// between them before that. nullopt if its rank is unknown and matters.
std::optional<ValueId> arranged(NodeBuilder& builder, ValueId id, bool is_transposed,
                                bool moves_batch) {
  if (!is_transposed && !moves_batch) return id;
  const int64_t rank = builder.rank_of(id);
  if (rank < 2) return rank < 0 ? std::nullopt : std::optional(id);
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  // The first axis becomes the one before the last.
  if (moves_batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (is_transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return builder.add("Transpose", {id}, attribute_list({{"perm", order}}));
}

// The product of FusedMatMul, and of ops that add to it.
std::optional<ValueId> product(NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  const auto is_set = [&](const char* name) {
    const int64_t* found = attributes.find_int(name);
    return found != nullptr && *found != 0;
  };
  if (!is_floating(builder.element_of(builder.input(0)))) return std::nullopt;
  const auto a = arranged(builder, builder.input(0), is_set("transA"), is_set("transBatchA"));
  const auto b = arranged(builder, builder.input(1), is_set("transB"), is_set("transBatchB"));
  if (!a || !b) return std::nullopt;
  ValueId result = builder.add("MatMul", {*a, *b});
  const float* alpha = attributes.find_float("alpha");
  if (alpha != nullptr && *alpha != 1) {
    result = builder.add("Mul", {result, builder.number(*alpha, result)});
  }
  return result;
}

bool write_fused_mat_mul(NodeBuilder& builder) {
  const auto result = product(builder);
  if (result) builder.give(0, *result);
  return result.has_value();
}

bool write_fused_mat_mul_activation(NodeBuilder& builder) {
  const auto sum = product(builder);
  if (!sum) return false;
  const Attributes& attributes = builder.replaced().attributes;
  const auto result =
      activated(builder, *sum, activation_of(attributes), named_parameters(attributes));
  if (result) builder.give(0, *result);
  return result.has_value();
}

bool write_fused_gemm(NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  const ValueId sum = builder.add("Gemm", builder.replaced().inputs,
                                  selected(attributes, {"alpha", "beta", "transA", "transB"}));
  const auto result =
      activated(builder, sum, activation_of(attributes), named_parameters(attributes));
  if (result) builder.give(0, *result);
  return result.has_value();
}

// Gelu of the sum of all inputs.
bool write_gelu(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(0));
  ValueId sum = widened(builder, builder.input(0));
  if (builder.has_input(1)) sum = builder.add("Add", {sum, widened(builder, builder.input(1))});
  const bool is_fast = builder.replaced().op == "FastGelu";
  const std::string approximation = is_fast ? "tanh" : "none";
  give_as(builder, 0, builder.add("Gelu", {sum}, attribute_list({{"approximate", approximation}})),
          element);
  return true;
}

bool write_quick_gelu(NodeBuilder& builder) {
  const float alpha = builder.replaced().attributes.get_float("alpha");
  builder.give(0, builder.add("Swish", {builder.input(0)}, attribute_list({{"alpha", alpha}})));
  return true;
}

bool write_bias_add(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(0));
  ValueId sum = widened(builder, builder.input(0));
  for (const size_t index : {1, 2}) {
    sum = builder.add("Add", {sum, widened(builder, builder.input(index))});
  }
  give_as(builder, 0, sum, element);
  return true;
}

// The first half of the last axis times Gelu of the second one.
bool write_bias_split_gelu(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(0));
  const ValueId sum =
      builder.add("Add", {widened(builder, builder.input(0)), widened(builder, builder.input(1))});
  const std::vector<ValueId> halves = builder.add(
      "Split", {sum}, 2, attribute_list({{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}}));
  const ValueId gelu = builder.add("Gelu", {halves[1]});
  give_as(builder, 0, builder.add("Mul", {halves[0], gelu}), element);
  return true;
}

constexpr FunctionLowering kFusedLowerings[] = {
    {ops::kMicrosoftDomain, "FusedConv", write_fused_conv},
    {ops::kMicrosoftDomain, "FusedMatMul", write_fused_mat_mul},
    {ops::kMicrosoftDomain, "TransposeMatMul", write_fused_mat_mul},
    {ops::kMicrosoftDomain, "FusedMatMulActivation", write_fused_mat_mul_activation},
    {ops::kMicrosoftDomain, "FusedGemm", write_fused_gemm},
    {ops::kMicrosoftDomain, "Gelu", write_gelu},
    {ops::kMicrosoftDomain, "BiasGelu", write_gelu},
    {ops::kMicrosoftDomain, "FastGelu", write_gelu},
    {ops::kMicrosoftDomain, "QuickGelu", write_quick_gelu},
    {ops::kMicrosoftDomain, "BiasAdd", write_bias_add},
    {ops::kMicrosoftDomain, "BiasSplitGelu", write_bias_split_gelu},
};

}  // namespace

std::span<const FunctionLowering> fused_lowerings() { return kFusedLowerings; }

}  // namespace tessera
