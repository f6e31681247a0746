#include "element_groups.h"

#include <algorithm>
#include <set>

#include "node_program.h"

namespace tessera::native {

using plugin::Graph;
using plugin::Node;
using plugin::Value;

namespace {

// More than what models write out for one function; each more is more to choose from for all.
constexpr size_t kMostNodes = 8;

// The node that makes `value`, where it can be computed together with its readers, all of which are
// in `group`; else -1.
int32_t absorbable(const Graph& graph, const std::vector<bool>& is_element, const Value& value,
                   const std::set<int32_t>& group, const std::vector<int64_t>& dims) {
  const int32_t producer = value.producer();
  if (producer < 0 || !is_element[static_cast<size_t>(producer)] || value.is_needed()) return -1;
  if (elementwise_result(graph.node(producer)).id() != value.id()) return -1;
  if (value.type().dims != dims) return -1;
  const auto is_inside = [&](int32_t reader) { return group.contains(reader); };
  const bool is_kept = std::all_of(value.consumers().begin(), value.consumers().end(), is_inside);
  return is_kept ? producer : -1;
}

// The largest group whose result is that of `last`.
std::set<int32_t> group_before(const Graph& graph, const std::vector<bool>& is_element,
                               int32_t last) {
  const std::vector<int64_t> dims = elementwise_result(graph.node(last)).type().dims;
  std::set<int32_t> group = {last};
  bool has_grown = true;
  while (has_grown && group.size() < kMostNodes) {
    has_grown = false;
    // The latest first: a node is taken when all of its readers are.
    for (auto at = group.rbegin(); at != group.rend() && !has_grown; ++at) {
      const Node node = graph.node(*at);
      for (size_t index = 0; index < node.input_count() && !has_grown; ++index) {
        const Value input = node.input(index);
        if (!input.is_present()) continue;
        const int32_t producer = absorbable(graph, is_element, input, group, dims);
        if (producer >= 0) has_grown = group.insert(producer).second;
      }
    }
  }
  return group;
}

}  // namespace

std::vector<std::vector<int32_t>> find_element_groups(
    const Graph& graph, const std::vector<bool>& is_element,
    const std::function<bool(const std::vector<int32_t>& nodes)>& fits) {
  std::set<std::vector<int32_t>> groups;
  std::set<int32_t> inside;
  for (int32_t last = graph.node_count() - 1; last >= 0; --last) {
    if (!is_element[static_cast<size_t>(last)]) continue;
    const std::set<int32_t> found = group_before(graph, is_element, last);
    std::vector<int32_t> nodes(found.begin(), found.end());
    // What stands within a group is a group's end too, if not one to be cut from the front.
    const bool is_inside = inside.contains(last);
    bool has_fit = false;
    while (nodes.size() > 1) {
      if (fits(nodes)) {
        groups.insert(nodes);
        inside.insert(nodes.begin(), nodes.end() - 1);
        has_fit = true;
      }
      if (has_fit && is_inside) break;
      nodes.erase(nodes.begin());
    }
  }
  std::vector<std::vector<int32_t>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& left, const auto& right) { return left.size() > right.size(); });
  return sorted;
}

}  // namespace tessera::native
