#include "measure/group_cases.h"

#include <algorithm>
#include <utility>

#include "base/memory.h"

namespace tessera::tuning {
namespace {

// Measuring may keep 1 / kPartOfAvailable of the available memory.
constexpr int64_t kPartOfAvailable = 4;
// Copies of the values and weights of a measured group: one is shared with the worker, the others
// are in the buffers and packs of the candidates there, or of a library.
constexpr int64_t kCopiesOfGroup = 3;

}  // namespace

int64_t limited_by_memory(int64_t wanted) {
  return std::min(wanted, available_memory_bytes() / kPartOfAvailable);
}

std::string explain_shortage(const Graph& group, int64_t value_bytes) {
  int64_t bytes = value_bytes;
  for (const Value& value : group.values) {
    if (value.constant.has_elements()) bytes += value.constant.bytes();
  }
  const int64_t available = available_memory_bytes();
  if (bytes <= available / kCopiesOfGroup) return "";
  return "it takes about " + std::to_string(kCopiesOfGroup) + " times " + std::to_string(bytes) +
         " bytes, and " + std::to_string(available) + " are available";
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
