#include "measure/capture.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/layouts.h"
#include "base/memory/memory.h"
#include "ops/evaluate.h"
#include "tessera/error.h"
#include "verify/compare_tensors.h"
#include "verify/random_tensor.h"
#include "verify/special_values.h"

namespace tessera::tuning {
namespace {

// After more chained products, magnitudes are so much larger than values that any error is small
// relative to them.
constexpr int kMaxProducts = verification::kMaxProductsInARow;

// By value, the maximum number of chained products between the group's inputs and it.
std::vector<int> max_products_before(const Graph& group, const ops::Registry& registry) {
  std::vector<int> counts(group.values.size(), 0);
  for (const Node& node : group.nodes) {
    int max_count = 0;
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) max_count = std::max(max_count, counts[static_cast<size_t>(id.index)]);
    }
    if (registry.has_trait(node, ops::kProduct)) ++max_count;
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) counts[static_cast<size_t>(id.index)] = max_count;
    }
  }
  return counts;
}

// Whether all its inputs come from outside of the group.
bool reads_true_values(const Graph& group, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    const bool is_input =
        std::find(group.inputs.begin(), group.inputs.end(), id) != group.inputs.end();
    return id.is_none() || is_input || group[id].is_constant();
  });
}

// By value, whether an output after few products depends on it.
std::vector<bool> lead_to_outputs(const Graph& group, const std::vector<int>& products) {
  std::vector<bool> is_needed(group.values.size(), false);
  for (const ValueId output : group.outputs) {
    const auto at = static_cast<size_t>(output.index);
    is_needed[at] = products[at] <= kMaxProducts;
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

// Sets `values` of the outputs of `node` by running the reference; returns false and sets nothing
// if the reference rejects the inputs. Products of values from outside of the group are cached in
// `known`, unless that is null.
bool try_evaluate(const Graph& group, const ops::Registry& registry, const Node& node,
                  std::vector<Tensor>& values, ThreadPool& pool, KnownProducts* known) {
  const auto of = [&](ValueId id) -> Tensor& { return values[static_cast<size_t>(id.index)]; };
  const ValueId first = node.outputs[0];
  const bool is_kept =
      known != nullptr && registry.has_trait(node, ops::kProduct) && reads_true_values(group, node);
  if (is_kept) {
    const auto found = known->by_value.find(group[first].name);
    if (found != known->by_value.end()) {
      of(first) = found->second;
      return true;
    }
  }
  std::vector<Tensor> given;
  for (const ValueId id : node.inputs) given.push_back(id.is_none() ? Tensor() : of(id));
  std::vector<Tensor> made;
  try {
    made = ops::evaluate(registry.of(node), node, given, pool);
  } catch (const Error&) {
    return false;
  }
  for (size_t index = 0; index < made.size(); ++index) {
    if (!node.outputs[index].is_none()) of(node.outputs[index]) = std::move(made[index]);
  }
  if (is_kept && known->bytes + of(first).bytes() <= known->max_bytes) {
    known->bytes += of(first).bytes();
    known->by_value.emplace(group[first].name, of(first));
  }
  return true;
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
  // Little-endian: the lowest byte comes first.
  for (size_t index = 0; index < static_cast<size_t>(drawn.elements()); ++index) {
    bytes[index * size] = static_cast<const char*>(bits.data())[index];
  }
  return drawn;
}

// A word that can be cast to a number, too.
Tensor numbers_as_text(const std::vector<int64_t>& dims) {
  return Tensor::strings(dims,
                         std::vector<std::string>(static_cast<size_t>(element_count(dims)), "0"));
}

}  // namespace

std::vector<Tensor> draw_inputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    const Type& declared = graph[id].type;
    const std::optional<TensorType> type = known_type(declared);
    if (declared.is_known_tensor() && declared.element == DataType::String) {
      inputs.push_back(numbers_as_text(dims_from(*declared.shape)));
    } else {
      inputs.push_back(type ? draw(*type, seed++) : Tensor());
    }
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
  const ScopedDenormals rule(denormals_);
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
  bool is_stopped = false;
  interpreter_.run(inputs_, [&](const StepEvent& event) {
    for (size_t index = 0; index < event.outputs.size(); ++index) {
      const ValueId id = event.node.outputs[index];
      if (!id.is_none() && missing.erase(id) > 0) found[id] = event.outputs[index];
    }
    if (missing.empty()) return false;
    is_stopped = watcher && !watcher(event.node.op, ++done, graph.nodes.size());
    return !is_stopped;
  });
  if (is_stopped) return std::nullopt;
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
  const std::vector<bool> is_needed = lead_to_outputs(group, max_products_before(group, registry));
  for (Node node : group.nodes) {
    const ValueId first = node.outputs[0];
    if (!first.is_none() && !is_needed[static_cast<size_t>(first.index)]) continue;
    const auto is_known = [&](ValueId id) { return id.is_none() || !of(id).is_empty(); };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) continue;
    if (registry.has_trait(node, ops::kNonExpansive)) {
      of(node.outputs[0]) = of(node.inputs[0]);
      continue;
    }
    // For magnitudes, a difference is as large as the sum.
    if (node.domain.empty() && node.op == "Sub") node.op = "Add";
    if (!registry.has_trait(node, ops::kBoundsMagnitude | ops::kView)) continue;
    // If a kernel rejects magnitudes, nothing is known about its outputs.
    (void)try_evaluate(group, registry, node, magnitudes, pool, known);
  }
  std::vector<Tensor> of_outputs;
  for (const ValueId id : group.outputs) of_outputs.push_back(of(id));
  return of_outputs;
}

SpecialRun run_special_values(const Graph& group, const ops::Registry& registry,
                              std::span<const Tensor> inputs, ThreadPool& pool,
                              KnownProducts* known) {
  const std::vector<int> products = max_products_before(group, registry);
  const verification::SpecialValues kinds = verification::special_values_for(group, registry);
  SpecialRun special;
  std::vector<Tensor> values(group.values.size());
  for (size_t index = 0; index < values.size(); ++index) {
    if (products[index] > kMaxProducts) return {};
    values[index] = group.values[index].constant;
  }
  bool has_any = false;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const ValueId id = group.inputs[index];
    const Tensor changed = verification::with_special_values(inputs[index], group[id].name, kinds);
    has_any = has_any || !changed.is_empty();
    special.inputs.push_back(changed.is_empty() ? inputs[index] : changed);
    values[static_cast<size_t>(id.index)] = special.inputs.back();
  }
  if (!has_any) return {};
  for (const Node& node : group.nodes) {
    if (!try_evaluate(group, registry, node, values, pool, known)) return {};
  }
  for (const ValueId id : group.outputs) {
    special.outputs.push_back(values[static_cast<size_t>(id.index)]);
  }
  return special;
}

int64_t limited_by_memory(int64_t wanted, const MeasureTuning& tuning) {
  return std::min(wanted, available_memory_bytes() / tuning.available_memory_divisor);
}

std::string explain_shortage(const Graph& group, int64_t value_bytes, const MeasureTuning& tuning) {
  int64_t bytes = value_bytes;
  for (const Value& value : group.values) {
    if (value.constant.has_elements()) bytes += value.constant.bytes();
  }
  const int64_t available = available_memory_bytes();
  if (bytes <= available / tuning.group_copies) return "";
  return "it takes about " + std::to_string(tuning.group_copies) + " times " +
         std::to_string(bytes) + " bytes, and " + std::to_string(available) + " are available";
}

GroupCases::GroupCases(const TuningTask& task, Denormals denormals, PhaseTimer& phases)
    : task_(task),
      denormals_(denormals),
      phases_(phases),
      pool_(task.threads, denormals),
      graph_bytes_(value_bytes(task.graph)) {}

GroupCase GroupCases::make(const Graph& group, std::vector<Tensor> inputs,
                           std::vector<Tensor> outputs) {
  GroupCase made{.graph = group,
                 .inputs = std::move(inputs),
                 .outputs = std::move(outputs),
                 .judge = first_judge_of(group),
                 .threads = task_.threads,
                 .precision = task_.precision,
                 .nan = task_.nan,
                 .accuracy = task_.accuracy,
                 .denormals = denormals_,
                 .bytes_between = graph_bytes_};
  if (task_.nan == TESSERA_NAN_FAST) return made;
  const ScopedDenormals rule(denormals_);
  const PhaseTimer::Scope running(phases_, "special values");
  SpecialRun special =
      run_special_values(made.graph, task_.registry, made.inputs, pool_, &known_specials_);
  made.special_inputs = std::move(special.inputs);
  made.special_outputs = std::move(special.outputs);
  return made;
}

bool GroupCases::add_limits(GroupCase& group) {
  if (group.judge != verification::Judge::Ulps) return add_magnitudes(group);
  // If nothing is known about errors within such a group, its judge stays wide.
  if (!add_exact(group)) group.judge = verification::Judge::Wide;
  // Results for special values are judged by magnitudes, too: if these overflow, a sum may do so.
  (void)add_magnitudes(group);
  return true;
}

verification::Judge GroupCases::first_judge_of(const Graph& group) const {
  const bool is_bounded =
      task_.accuracy == TESSERA_ACCURACY_BOUNDED && task_.precision == TESSERA_PRECISION_FLOAT32;
  return is_bounded && verification::ulps_of(group, task_.registry) ? verification::Judge::Ulps
                                                                    : verification::Judge::Wide;
}

bool GroupCases::add_exact(GroupCase& group) {
  const ScopedDenormals rule(denormals_);
  const PhaseTimer::Scope running(phases_, "error limits");
  std::vector<Tensor> known(group.graph.values.size());
  for (size_t index = 0; index < known.size(); ++index) {
    known[index] = group.graph.values[index].constant;
  }
  for (size_t index = 0; index < group.inputs.size(); ++index) {
    known[static_cast<size_t>(group.graph.inputs[index].index)] = group.inputs[index];
  }
  const auto limits = verification::error_limits(group.graph, task_.registry, std::move(known),
                                                 pool_, &known_limits_);
  if (!limits) return false;
  for (const ValueId id : group.graph.outputs) {
    const verification::ErrorLimits& found = (*limits)[static_cast<size_t>(id.index)];
    group.exact.push_back(found.exact);
    group.spreads.push_back(found.spread);
  }
  group.judge = verification::Judge::Limits;
  return true;
}

// Returns whether any are known.
bool GroupCases::add_magnitudes(GroupCase& group) {
  const ScopedDenormals rule(denormals_);
  const PhaseTimer::Scope running(phases_, "magnitudes");
  group.magnitudes =
      summed_magnitudes(group.graph, task_.registry, group.inputs, pool_, &known_magnitudes_);
  return std::ranges::any_of(group.magnitudes,
                             [](const Tensor& tensor) { return !tensor.is_empty(); });
}

}  // namespace tessera::tuning
