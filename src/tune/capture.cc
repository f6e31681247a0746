#include "tune/capture.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "backend/layouts.h"
#include "ops/evaluate.h"
#include "tessera/error.h"
#include "verify/compare_tensors.h"
#include "verify/random_tensor.h"
#include "verify/special_values.h"

namespace tessera::tuning {
namespace {

// Computed on magnitudes, they tell the magnitude of what they summed or multiplied.
constexpr std::array<std::string_view, 24> kOnMagnitudes = {
    "Conv",   "ConvTranspose", "Gemm",      "MatMul",     "Add",         "Mul",
    "Sum",    "Mean",          "ReduceSum", "ReduceMean", "AveragePool", "GlobalAveragePool",
    "CumSum", "Reshape",       "Flatten",   "Squeeze",    "Unsqueeze",   "Transpose",
    "Concat", "Slice",         "MaxPool",   "Identity",   "Expand",      "DepthToSpace"};
// |f(a) - f(b)| is at most about |a - b|, and the output has the input's dimensions.
constexpr std::array<std::string_view, 16> kHandOn = {
    "Relu", "Clip",  "LeakyRelu",       "Sigmoid",  "Tanh",     "HardSigmoid", "HardSwish", "Elu",
    "Gelu", "Swish", "ThresholdedRelu", "Softplus", "Softsign", "Abs",         "Neg",       "Mish"};

// Behind so many products in a row magnitudes are so far above the values that any error is small
// beside them.
constexpr int kMostProducts = 2;

bool is_product(const Node& node) {
  constexpr std::array<std::string_view, 4> kProducts = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  return node.domain.empty() &&
         std::find(kProducts.begin(), kProducts.end(), node.op) != kProducts.end();
}

// By value, how many products stand one behind the other between the group's inputs and it.
std::vector<int> products_before(const Graph& group) {
  std::vector<int> counts(group.values.size(), 0);
  for (const Node& node : group.nodes) {
    int most = 0;
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) most = std::max(most, counts[static_cast<size_t>(id.index)]);
    }
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) counts[static_cast<size_t>(id.index)] = most + (is_product(node) ? 1 : 0);
    }
  }
  return counts;
}

// Whether what it reads comes from outside of the group.
bool reads_true_values(const Graph& group, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    const bool is_input =
        std::find(group.inputs.begin(), group.inputs.end(), id) != group.inputs.end();
    return id.is_none() || is_input || group[id].is_constant();
  });
}

// By value, whether an output that stands behind few products is made of it.
std::vector<bool> lead_to_outputs(const Graph& group, const std::vector<int>& products) {
  std::vector<bool> is_needed(group.values.size(), false);
  for (const ValueId output : group.outputs) {
    const auto at = static_cast<size_t>(output.index);
    is_needed[at] = products[at] <= kMostProducts;
  }
  for (auto node = group.nodes.rbegin(); node != group.nodes.rend(); ++node) {
    const bool is_wanted = std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) {
      return !id.is_none() && is_needed[static_cast<size_t>(id.index)];
    });
    if (!is_wanted) continue;
    for (const ValueId id : node->inputs) {
      if (!id.is_none()) is_needed[static_cast<size_t>(id.index)] = true;
    }
  }
  return is_needed;
}

template <size_t Count>
bool is_one_of(const Node& node, const std::array<std::string_view, Count>& ops) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op) != ops.end();
}

// Thrown out of the run once everything is there.
struct IsComplete {};
struct IsStopped {};

// Puts into `values`, by value, what the reference makes of `node`. Products of what comes from
// outside of the group are kept in `known`, unless that is null, and taken from there. Throws what
// the reference refuses its inputs with.
void evaluate_node(const Graph& group, const ops::Registry& registry, const Node& node,
                   std::vector<Tensor>& values, ThreadPool& pool, KnownProducts* known) {
  const auto of = [&](ValueId id) -> Tensor& { return values[static_cast<size_t>(id.index)]; };
  const ValueId first = node.outputs[0];
  const bool is_kept = known != nullptr && is_product(node) && reads_true_values(group, node);
  if (is_kept) {
    const auto found = known->by_value.find(group[first].name);
    if (found != known->by_value.end()) {
      of(first) = found->second;
      return;
    }
  }
  std::vector<Tensor> given;
  for (const ValueId id : node.inputs) given.push_back(id.is_none() ? Tensor() : of(id));
  std::vector<Tensor> made = ops::evaluate(registry.of(node), node, given, pool);
  for (size_t index = 0; index < made.size(); ++index) {
    if (!node.outputs[index].is_none()) of(node.outputs[index]) = std::move(made[index]);
  }
  if (is_kept && known->bytes + of(first).bytes() <= known->most_bytes) {
    known->bytes += of(first).bytes();
    known->by_value.emplace(group[first].name, of(first));
  }
}

Tensor draw(const TensorType& type, uint64_t seed) {
  if (is_floating(type.element)) {
    return verification::random_tensor(type.element, type.dims, false, seed);
  }
  Tensor drawn(type.element, type.dims);
  const Tensor bits = verification::random_bits(DataType::Bool, type.dims, seed);
  auto* bytes = static_cast<char*>(drawn.mutable_data());
  const auto size = static_cast<size_t>(element_bytes(type.element));
  std::fill(bytes, bytes + drawn.bytes(), '\0');
  // The lowest byte stands first.
  for (size_t index = 0; index < static_cast<size_t>(drawn.elements()); ++index) {
    bytes[index * size] = static_cast<const char*>(bits.data())[index];
  }
  return drawn;
}

}  // namespace

std::vector<Tensor> draw_inputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    const std::optional<TensorType> type = known_type(graph[id].type);
    inputs.push_back(type ? draw(*type, seed++) : Tensor());
  }
  return inputs;
}

Capture::Capture(const Graph& graph, const ops::Registry& registry, int threads,
                 std::vector<Tensor> inputs, Denormals denormals)
    : denormals_(denormals),
      interpreter_(graph, registry, threads, denormals),
      inputs_(std::move(inputs)) {}

std::optional<CapturedValues> Capture::run(std::span<const ValueId> wanted,
                                           const Watcher& watcher) {
  const DenormalRule rule(denormals_);
  CapturedValues found;
  std::set<ValueId> missing(wanted.begin(), wanted.end());
  const Graph& graph = interpreter_.graph();
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    if (missing.erase(graph.inputs[index]) > 0) found[graph.inputs[index]] = inputs_[index];
  }
  for (const ValueId id : wanted) {
    if (graph[id].is_constant() && missing.erase(id) > 0) found[id] = graph[id].constant;
  }
  if (missing.empty()) return found;
  size_t done = 0;
  try {
    interpreter_.run(inputs_, [&](const StepEvent& event) {
      for (size_t index = 0; index < event.outputs.size(); ++index) {
        const ValueId id = event.node.outputs[index];
        if (!id.is_none() && missing.erase(id) > 0) found[id] = event.outputs[index];
      }
      if (missing.empty()) throw IsComplete{};
      if (watcher && !watcher(event.node.op, ++done, graph.nodes.size())) throw IsStopped{};
    });
  } catch (const IsComplete&) {
    // All that was wanted has been made.
  } catch (const IsStopped&) {
    return std::nullopt;
  }
  return found;
}

std::vector<Tensor> summed_magnitudes(const Graph& group, const ops::Registry& registry,
                                      std::span<const Tensor> inputs, ThreadPool& pool,
                                      KnownProducts* known) {
  std::vector<Tensor> magnitudes(group.values.size());
  const auto of = [&](ValueId id) -> Tensor& { return magnitudes[static_cast<size_t>(id.index)]; };
  for (size_t index = 0; index < group.values.size(); ++index) {
    const Tensor& constant = group.values[index].constant;
    if (!constant.is_empty()) magnitudes[index] = verification::magnitude_of(constant);
  }
  for (size_t index = 0; index < inputs.size(); ++index) {
    of(group.inputs[index]) = verification::magnitude_of(inputs[index]);
  }
  const std::vector<bool> is_needed = lead_to_outputs(group, products_before(group));
  for (Node node : group.nodes) {
    const ValueId first = node.outputs[0];
    if (!first.is_none() && !is_needed[static_cast<size_t>(first.index)]) continue;
    const auto is_known = [&](ValueId id) { return id.is_none() || !of(id).is_empty(); };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) continue;
    if (is_one_of(node, kHandOn)) {
      of(node.outputs[0]) = of(node.inputs[0]);
      continue;
    }
    // What is taken away is as large as what is added.
    if (node.domain.empty() && node.op == "Sub") node.op = "Add";
    if (!is_one_of(node, kOnMagnitudes)) continue;
    try {
      evaluate_node(group, registry, node, magnitudes, pool, known);
    } catch (const Error&) {
      // A kernel that refuses magnitudes tells nothing about them.
    }
  }
  std::vector<Tensor> of_outputs;
  for (const ValueId id : group.outputs) of_outputs.push_back(of(id));
  return of_outputs;
}

SpecialRun run_special_values(const Graph& group, const ops::Registry& registry,
                              std::span<const Tensor> inputs, ThreadPool& pool,
                              KnownProducts* known) {
  const std::vector<int> products = products_before(group);
  const verification::SpecialValues kinds = verification::special_values_for(group, registry);
  SpecialRun special;
  std::vector<Tensor> values(group.values.size());
  for (size_t index = 0; index < values.size(); ++index) {
    if (products[index] > kMostProducts) return {};
    values[index] = group.values[index].constant;
  }
  bool has_any = false;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const ValueId id = group.inputs[index];
    Tensor changed = verification::with_special_values(inputs[index], group[id].name, kinds);
    has_any = has_any || !changed.is_empty();
    special.inputs.push_back(changed.is_empty() ? inputs[index] : std::move(changed));
    values[static_cast<size_t>(id.index)] = special.inputs.back();
  }
  if (!has_any) return {};
  try {
    for (const Node& node : group.nodes) {
      evaluate_node(group, registry, node, values, pool, known);
    }
  } catch (const Error&) {
    return {};
  }
  for (const ValueId id : group.outputs) {
    special.outputs.push_back(values[static_cast<size_t>(id.index)]);
  }
  return special;
}

}  // namespace tessera::tuning
