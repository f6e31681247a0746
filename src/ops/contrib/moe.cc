// MoE: a mixture of experts. A router selects for each token the experts of the highest
// probabilities; each is a network of two layers, whose results are added by these probabilities.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/elementwise/activation_functions.h"
#include "ops/matmul/matrix_product.h"

namespace tessera::ops {
namespace {

enum MoeInput : uint8_t {
  kTokens,
  kRouter,
  kFirstWeights,
  kFirstBias,
  kSecondWeights,
  kSecondBias,
  kGateWeights,  // "fc3"
  kGateBias
};

constexpr const char* kSwiglu = "swiglu";
enum Fusion : uint8_t { kNotFused, kInterleaved, kConcatenated };  // of attribute swiglu_fusion

using GateFunction = double (*)(double);

double identity_of(double x) { return x; }
double moe_silu(double x) { return x * activation::sigmoid(x); }

// nullptr for swiglu, which has parameters.
GateFunction function_of(const InferContext* context, const Node& node) {
  const std::string& name = node.attributes.get_string("activation_type");
  if (name == "relu") return activation::relu;
  if (name == "gelu") return activation::gelu_by_tanh;
  if (name == "silu") return moe_silu;
  if (name == "identity") return identity_of;
  if (name != kSwiglu && context != nullptr) {
    context->fail(
        "attribute 'activation_type': expected 'relu', 'gelu', 'silu', 'swiglu' or "
        "'identity', found '" +
        name + "'");
  }
  return nullptr;
}

bool has_fused_gate(const Node& node) {
  return node.attributes.get_string("activation_type") == kSwiglu &&
         node.attributes.get_int("swiglu_fusion") != kNotFused;
}

void check_moe_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const bool is_swiglu = function_of(&context, context.node()) == nullptr;
  if (attributes.get_int("use_sparse_mixer") != 0) {
    context.fail_unsupported("expected 'use_sparse_mixer' 0, found another value");
  }
  const int64_t fusion = attributes.get_int("swiglu_fusion");
  if (fusion < kNotFused || fusion > kConcatenated) {
    context.fail("expected 'swiglu_fusion' 0, 1 or 2, found " + std::to_string(fusion));
  }
  const bool has_gate = context.has_input(kGateWeights);
  if (is_swiglu && has_gate == (fusion != kNotFused)) {
    context.fail(has_gate ? "expected no 'fc3_experts_weights', because 'swiglu_fusion' is not 0"
                          : "expected 'fc3_experts_weights', because 'swiglu_fusion' is 0");
  }
  if (context.has_input(kGateBias) && !has_gate) {
    context.fail_input(kGateBias, "expected 'fc3_experts_weights' beside it");
  }
}

void check_expert_shapes(const InferContext& context, const Shape& input) {
  const Dim& hidden = input.back();
  const Dim tokens = input.size() == 2 ? input[0] : multiply(input[0], input[1]);
  const Shape* router = context.shape(kRouter);
  const Shape* second = context.shape(kSecondWeights);
  if (router == nullptr || second == nullptr) return;
  check_shape(context, kRouter, {tokens, router->back()});
  const Dim& experts = router->back();
  const int64_t k = context.node().attributes.get_int("k");
  if (k < 1 || (experts.is_known() && k > experts.value())) {
    context.fail("expected 'k' in [1, " + experts.text() + "], found " + std::to_string(k));
  }
  const Dim& inner = second->back();
  const Dim first = multiply(inner, has_fused_gate(context.node()) ? 2 : 1);
  check_shape(context, kFirstWeights, {experts, first, hidden});
  check_shape(context, kFirstBias, {experts, first});
  check_shape(context, kSecondWeights, {experts, hidden, inner});
  check_shape(context, kSecondBias, {experts, hidden});
  check_shape(context, kGateWeights, {experts, inner, hidden});
  check_shape(context, kGateBias, {experts, inner});
}

void infer_moe(InferContext& context) {
  check_moe_attributes(context);
  check_rank(context, kRouter, 2);
  check_rank(context, kSecondWeights, 3);
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const Shape* input = context.shape(0);
  if (input == nullptr) return;
  if (input->size() != 2 && input->size() != 3) {
    context.fail_input(0, "expected rank 2 or 3, found [" + text(*input) + "]");
  }
  check_expert_shapes(context, *input);
}

// A token that an expert gets.
struct RoutedToken {
  int64_t expert = 0;
  int64_t token = 0;
  double weight = 0;
};

// The probability of each expert, in place of its logit.
void router_softmax(std::span<double> logits) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double logit : logits) largest = std::max(largest, logit);
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - largest);
  for (double& logit : logits) logit /= sum;
}

// The `k` experts of each token, by expert. If probabilities are equal, the last expert wins.
std::pmr::vector<RoutedToken> route_tokens(const KernelCall& call) {
  const auto k = static_cast<size_t>(call.node.attributes.get_int("k"));
  const bool is_normalized = call.node.attributes.get_int("normalize_routing_weights") != 0;
  std::pmr::vector<double> logits = to_doubles(call.inputs[kRouter], call.scratch);
  const auto experts = static_cast<size_t>(call.inputs[kRouter].dims[1]);
  std::pmr::vector<RoutedToken> routes(&call.scratch);
  for (size_t token = 0; token * experts < logits.size(); ++token) {
    const std::span<double> line = std::span(logits).subspan(token * experts, experts);
    router_softmax(line);
    const size_t first_route = routes.size();
    double sum = 0;
    for (size_t rank = 0; rank < k; ++rank) {
      size_t best = 0;
      for (size_t expert = 1; expert < experts; ++expert) {
        if (line[expert] >= line[best]) best = expert;
      }
      // Not NaN either, and not one that was taken before.
      if (!(line[best] > 0)) break;
      sum += line[best];
      routes.push_back({static_cast<int64_t>(best), static_cast<int64_t>(token), line[best]});
      line[best] = -1;
    }
    for (size_t route = first_route; is_normalized && route < routes.size(); ++route) {
      routes[route].weight /= sum;
    }
  }
  std::ranges::sort(routes, {},
                    [](const RoutedToken& route) { return std::pair(route.expert, route.token); });
  return routes;
}

// results = rows * weights^T + bias, for the layer of one expert: [rows, depth] and [outputs,
// depth].
template <class T, class ReadRow>
void multiply_layer(const KernelCall& call, size_t weights, int64_t expert, int64_t rows,
                    const ReadRow& read_row, std::span<double> results) {
  const int64_t outputs = call.inputs[weights].dims[1];
  const int64_t depth = call.inputs[weights].dims[2];
  const T* matrix = call.inputs[weights].as<T>().data() + expert * outputs * depth;
  const size_t bias = weights + 1;  // which follows the weights of each layer
  const T* offsets =
      call.has_input(bias) ? call.inputs[bias].as<T>().data() + expert * outputs : nullptr;
  const auto read_left = [&](int64_t, int64_t row, int64_t begin, int64_t count, double* target) {
    read_row(row, begin, count, target);
  };
  const auto read_right = [&](int64_t, int64_t line, int64_t begin, int64_t count, double* target) {
    const T* source = matrix + line * depth + begin;
    std::transform(source, source + count, target, to_double<T>);
  };
  const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count, const double* sums) {
    double* target = results.data() + row * outputs + column;
    for (int64_t index = 0; index < count; ++index) {
      target[index] = sums[index] + (offsets == nullptr ? 0.0 : to_double(offsets[column + index]));
    }
  };
  multiply_matrices<double>(call, {.rows = rows,
                                   .columns = outputs,
                                   .depth = depth,
                                   .left = {read_left, true},
                                   .right = {read_right, true},
                                   .store = store});
}

// G * sigmoid(alpha * G) * (L + beta), with limits.
class Swiglu {
 public:
  explicit Swiglu(const Attributes& attributes)
      : alpha_(attributes.get_float("activation_alpha")),
        beta_(attributes.get_float("activation_beta")) {
    if (const float* const limit = attributes.find_float("swiglu_limit")) limit_ = *limit;
  }

  double apply(double gate, double linear) const {
    gate = gate > limit_ ? limit_ : gate;
    linear = linear > limit_ ? limit_ : linear < -limit_ ? -limit_ : linear;
    return gate * activation::sigmoid(alpha_ * gate) * (linear + beta_);
  }

 private:
  double alpha_;
  double beta_;
  double limit_ = std::numeric_limits<double>::infinity();
};

// The activations of one row: `first` is what the first layer gave, `gate` the gating layer, if
// there is one.
void activate_row(const Node& node, std::span<const double> first, std::span<const double> gate,
                  std::span<double> inner) {
  const GateFunction function = function_of(nullptr, node);
  const bool is_interleaved = node.attributes.get_int("swiglu_fusion") == kInterleaved;
  const Swiglu swiglu(node.attributes);
  for (size_t index = 0; index < inner.size(); ++index) {
    if (function != nullptr) {
      inner[index] = function(first[index]) * (gate.empty() ? 1.0 : gate[index]);
    } else if (!gate.empty()) {
      inner[index] = swiglu.apply(first[index], gate[index]);
    } else {
      inner[index] = is_interleaved ? swiglu.apply(first[2 * index], first[2 * index + 1])
                                    : swiglu.apply(first[index], first[inner.size() + index]);
    }
  }
}

// Adds the weighted results of one expert for its tokens to `sums`, [tokens, hidden].
template <class T>
void add_expert(const KernelCall& call, std::span<const RoutedToken> routes,
                std::span<double> sums) {
  const int64_t expert = routes.front().expert;
  const auto rows = static_cast<int64_t>(routes.size());
  const int64_t hidden = call.inputs[kSecondWeights].dims[1];
  const auto inner = static_cast<size_t>(call.inputs[kSecondWeights].dims[2]);
  const auto width = static_cast<size_t>(call.inputs[kFirstWeights].dims[1]);
  const T* tokens = call.inputs[kTokens].as<T>().data();
  const auto read_token = [&](int64_t row, int64_t begin, int64_t count, double* target) {
    const T* source = tokens + routes[static_cast<size_t>(row)].token * hidden + begin;
    std::transform(source, source + count, target, to_double<T>);
  };
  std::pmr::vector<double> first(routes.size() * width, &call.scratch);
  multiply_layer<T>(call, kFirstWeights, expert, rows, read_token, first);
  const bool has_gate = call.has_input(kGateWeights);
  std::pmr::vector<double> gate(has_gate ? routes.size() * inner : 0, &call.scratch);
  if (has_gate) multiply_layer<T>(call, kGateWeights, expert, rows, read_token, gate);
  std::pmr::vector<double> activated(routes.size() * inner, &call.scratch);
  call.pool.parallel_for(
      rows, row_grain(8 * static_cast<int64_t>(inner)), [&](int64_t begin, int64_t end) {
        for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
          activate_row(call.node, std::span(first).subspan(row * width, width),
                       has_gate ? std::span(gate).subspan(row * inner, inner) : std::span<double>(),
                       std::span(activated).subspan(row * inner, inner));
        }
      });
  const auto read_inner = [&](int64_t row, int64_t begin, int64_t count, double* target) {
    std::copy_n(activated.data() + row * static_cast<int64_t>(inner) + begin, count, target);
  };
  std::pmr::vector<double> results(routes.size() * static_cast<size_t>(hidden), &call.scratch);
  multiply_layer<T>(call, kSecondWeights, expert, rows, read_inner, results);
  for (int64_t row = 0; row < rows; ++row) {
    const RoutedToken& route = routes[static_cast<size_t>(row)];
    for (int64_t column = 0; column < hidden; ++column) {
      sums[static_cast<size_t>(route.token * hidden + column)] +=
          route.weight * results[static_cast<size_t>(row * hidden + column)];
    }
  }
}

void run_moe(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const std::pmr::vector<RoutedToken> routes = route_tokens(call);
  std::pmr::vector<double> sums(static_cast<size_t>(output.elements), &call.scratch);
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto begin = routes.begin(); begin != routes.end();) {
      const auto end = std::ranges::find_if(begin, routes.end(), [&](const RoutedToken& route) {
        return route.expert != begin->expert;
      });
      add_expert<T>(call, {begin, end}, sums);
      begin = end;
    }
  });
  store_doubles(sums, output);
}

// A multiply-add for each weight of the experts of each token.
int64_t moe_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs) {
  const Shape& first = *inputs[kFirstWeights].shape;
  const Shape& second = *inputs[kSecondWeights].shape;
  const Dim per_element = multiply(add(first[1], second[2]), 2 * node.attributes.get_int("k"));
  return multiply(flops_per_output(node, inputs, outputs), per_element).value();
}

}  // namespace

std::vector<Op> moe_ops() {
  return {{.name = "MoE",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "T"},
                      {"router_probs", "T"},
                      {"fc1_experts_weights", "T"},
                      {"fc1_experts_bias", "T", Arity::Optional},
                      {"fc2_experts_weights", "T"},
                      {"fc2_experts_bias", "T", Arity::Optional},
                      {"fc3_experts_weights", "T", Arity::Optional},
                      {"fc3_experts_bias", "T", Arity::Optional}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"activation_alpha", AttributeKind::Float, 1.0F},
                          {"activation_beta", AttributeKind::Float, 0.0F},
                          {"activation_type", AttributeKind::String, std::string("relu")},
                          {"k", AttributeKind::Int, int64_t{1}},
                          {"normalize_routing_weights", AttributeKind::Int, int64_t{0}},
                          {"swiglu_fusion", AttributeKind::Int, int64_t{0}},
                          {"swiglu_limit", AttributeKind::Float, std::nullopt},
                          {"use_sparse_mixer", AttributeKind::Int, int64_t{0}}},
           .infer = infer_moe,
           .flops = moe_flops,
           .kernel = run_moe}};
}

}  // namespace tessera::ops
