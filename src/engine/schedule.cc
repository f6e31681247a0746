#include "engine/schedule.h"

#include <algorithm>

#include "tessera/error.h"

namespace tessera {
namespace {

// By value: the index of the last node that reads or makes it; nodes.size() if the value is needed
// after the last node.
std::vector<size_t> last_uses(const Graph& graph) {
  constexpr size_t kNever = 0;
  std::vector<size_t> last(graph.values.size(), kNever);
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    const auto use = [&](ValueId id) {
      if (!id.is_none()) last[static_cast<size_t>(id.index)] = index;
    };
    for (const ValueId id : node.inputs) use(id);
    for (const ValueId id : node.outputs) use(id);
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) use(capture.outer);
    }
  }
  for (const ValueId id : graph.outputs) last[static_cast<size_t>(id.index)] = graph.nodes.size();
  for (const ValueId id : graph.kept) last[static_cast<size_t>(id.index)] = graph.nodes.size();
  return last;
}

void add_bytes(int64_t& total, int64_t bytes) {
  if (__builtin_add_overflow(total, bytes, &total)) {
    throw Error(ErrorKind::InvalidModel, "graph",
                "the sizes of its values together exceed 64 bits");
  }
}

std::optional<int64_t> peak_bytes(const Graph& graph, const std::vector<Schedule::Step>& steps) {
  std::vector<bool> is_made_by_node(graph.values.size(), false);
  int64_t live = 0;
  int64_t peak = 0;
  for (const Schedule::Step& step : steps) {
    for (const ValueId id : graph[step.node].outputs) {
      if (id.is_none()) continue;
      const std::optional<int64_t> bytes = type_bytes(graph[id].type);
      if (!bytes) return std::nullopt;
      is_made_by_node[static_cast<size_t>(id.index)] = true;
      add_bytes(live, *bytes);
    }
    peak = std::max(peak, live);
    for (const ValueId id : step.released) {
      if (is_made_by_node[static_cast<size_t>(id.index)]) live -= *type_bytes(graph[id].type);
    }
  }
  return peak;
}

}  // namespace

Schedule make_schedule(const Graph& graph) {
  Schedule schedule;
  const std::vector<size_t> last = last_uses(graph);
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    schedule.steps.push_back({{static_cast<int32_t>(index)}, {}});
  }
  for (size_t value = 0; value < last.size(); ++value) {
    if (last[value] < schedule.steps.size()) {
      schedule.steps[last[value]].released.push_back({static_cast<int32_t>(value)});
    }
  }
  schedule.peak_bytes = peak_bytes(graph, schedule.steps);
  return schedule;
}

}  // namespace tessera
