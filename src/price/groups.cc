#include "price/groups.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "base/machine/cache.h"
#include "base/machine/processor.h"
#include "graph/extract_group.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

template <class Item>
void add_new(std::vector<Item>& list, const Item& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// The bench makes dense inputs only, and knows no capacities of sparse ones.
bool has_sparse_port(const TuningTask& task, const Candidate& candidate) {
  const auto is_sparse = [&](const auto& port) {
    return task.layouts.sparse_form(port.layout).has_value();
  };
  return std::ranges::any_of(candidate.inputs, is_sparse) ||
         std::ranges::any_of(candidate.outputs, is_sparse);
}

}  // namespace

std::vector<TuneGroup> collect_groups(const TuningTask& task) {
  std::map<std::vector<NodeId>, std::vector<int>> by_nodes;
  for (size_t index = 0; index < task.offers.candidates.size(); ++index) {
    by_nodes[task.offers.candidates[index].nodes].push_back(static_cast<int>(index));
  }
  std::vector<TuneGroup> groups;
  for (auto& [nodes, candidates] : by_nodes) {
    TuneGroup group{.nodes = nodes, .candidates = std::move(candidates)};
    try {
      group.graph = extract_group(task.graph, nodes);
    } catch (const Error&) {
      // Nothing reads its results, so they cannot be checked.
      continue;
    }
    group.text = group_text(group.graph, task.registry);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const TuneGroup& left, const TuneGroup& right) {
    return left.nodes.back() < right.nodes.back();
  });
  return groups;
}

CandidateId bench_id(const TuningTask& task, int index) {
  const Candidate& candidate = task.offers.candidates[static_cast<size_t>(index)];
  // Values have the same names in the group's graph.
  return id_alone(candidate, task.graph, task.layouts, task.threads);
}

std::vector<std::optional<CostKey>> cost_keys(const TuningTask& task,
                                              const std::vector<TuneGroup>& groups) {
  std::vector<std::optional<CostKey>> keys(task.offers.candidates.size());
  for (const TuneGroup& group : groups) {
    if (!group.text) continue;
    for (const int index : group.candidates) {
      const Candidate& candidate = task.offers.candidates[static_cast<size_t>(index)];
      if (has_sparse_port(task, candidate)) continue;
      CandidateId id = id_of(candidate, task.layouts, task.threads);
      id.nodes.clear();
      id.ports = layouts_text(candidate, task.graph, task.layouts, group.graph, *group.text);
      keys[static_cast<size_t>(index)] = CostKey{.work = group.text->text,
                                                 .candidate = std::move(id),
                                                 .ingredients = candidate.plugin->ingredients(),
                                                 .precision = task.precision,
                                                 .nan = task.nan,
                                                 .accuracy = task.accuracy};
    }
  }
  return keys;
}

std::vector<ValueLayouts> value_layouts(const TuningTask& task) {
  std::vector<ValueLayouts> values(task.graph.values.size());
  const auto of = [&](ValueId id) -> ValueLayouts& {
    return values[static_cast<size_t>(id.index)];
  };
  for (const ValueId input : task.graph.inputs) of(input).made = {kDefaultLayout};
  for (const Candidate& candidate : task.offers.candidates) {
    for (const CandidateInput& port : candidate.inputs) {
      if (!task.graph[port.value].is_constant()) add_new(of(port.value).read, port.layout);
    }
    for (const CandidateOutput& port : candidate.outputs) {
      add_new(of(port.value).made, port.layout);
    }
  }
  for (const auto* results : {&task.graph.outputs, &task.graph.kept}) {
    for (const ValueId id : *results) add_new(of(id).read, kDefaultLayout);
  }
  return values;
}

std::vector<NeededConversion> conversions_between(const TuningTask& task, ValueId value,
                                                  LayoutId from, LayoutId to) {
  std::vector<NeededConversion> needed;
  const std::optional<TensorType> type = known_type(task.graph[value].type);
  if (!type) return needed;
  const int64_t bytes = tensor_bytes(type->element, type->dims);
  for (const ConversionStep& step : task.layouts.route(from, to, *type)) {
    NeededConversion& conversion = needed.emplace_back();
    const bool is_of_host = step.plugin == nullptr;  // to or from a sparse layout
    conversion.key = {.backend = is_of_host ? std::string() : step.plugin->name(),
                      .from = task.layouts.name(step.from),
                      .to = task.layouts.name(step.to),
                      .element = type->element,
                      .dims = type->dims,
                      .threads = task.threads};
    conversion.cost_key = {.backend = conversion.key.backend,
                           .ingredients = is_of_host ? std::string() : step.plugin->ingredients(),
                           .from = conversion.key.from,
                           .to = conversion.key.to,
                           .element = type->element,
                           .size_class = size_class_of(bytes),
                           .threads = task.threads};
    conversion.bytes = bytes;
  }
  return needed;
}

std::vector<NeededConversion> needed_conversions(const TuningTask& task) {
  std::vector<NeededConversion> needed;
  std::set<ConversionCostKey> seen;
  const std::vector<ValueLayouts> layouts = value_layouts(task);
  for (size_t index = 0; index < layouts.size(); ++index) {
    const ValueId value{static_cast<int32_t>(index)};
    for (const LayoutId made : layouts[index].made) {
      for (const LayoutId read : layouts[index].read) {
        for (NeededConversion& step : conversions_between(task, value, made, read)) {
          if (step.is_of_host()) continue;
          if (seen.insert(step.cost_key).second) needed.push_back(std::move(step));
        }
      }
    }
  }
  return needed;
}

Weights weights_between_runs(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.is_constant()) bytes += value.constant.bytes();
  }
  // Intermediate values and other users of the cache need the rest: other cores and, on rented
  // machines, other tenants, whom the system does not show.
  return bytes > last_level_cache_bytes() / 4 ? Weights::Cold : Weights::Warm;
}

int64_t value_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values) bytes += type_bytes(value.type).value_or(0);
  return bytes;
}

std::string this_machine() {
  return processor_name() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace tessera::tuning
