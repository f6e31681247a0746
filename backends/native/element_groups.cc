#include "element_groups.h"

#include <algorithm>
#include <span>

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
                   const std::vector<int32_t>& group, const std::vector<int64_t>& dims) {
  const int32_t producer = value.producer();
  if (producer < 0 || !is_element[static_cast<size_t>(producer)] || value.is_needed()) return -1;
  if (elementwise_result(graph.node(producer)).id() != value.id()) return -1;
  if (value.type().dims != dims) return -1;
  const auto is_inside = [&](int32_t reader) {
    return std::binary_search(group.begin(), group.end(), reader);
  };
  const bool is_kept = std::all_of(value.consumers().begin(), value.consumers().end(), is_inside);
  return is_kept ? producer : -1;
}

// The largest group whose result is that of `last`, ascending.
std::vector<int32_t> group_before(const Graph& graph, const std::vector<bool>& is_element,
                                  int32_t last) {
  const std::vector<int64_t> dims = elementwise_result(graph.node(last)).type().dims;
  std::vector<int32_t> group = {last};
  bool has_grown = true;
  while (has_grown && group.size() < kMostNodes) {
    has_grown = false;
    // The latest first: a node is taken when all of its readers are.
    for (size_t at = group.size(); at > 0 && !has_grown; --at) {
      const Node node = graph.node(group[at - 1]);
      for (size_t index = 0; index < node.input_count() && !has_grown; ++index) {
        const Value input = node.input(index);
        if (!input.is_present()) continue;
        const int32_t producer = absorbable(graph, is_element, input, group, dims);
        const auto place = std::lower_bound(group.begin(), group.end(), producer);
        if (producer < 0 || (place != group.end() && *place == producer)) continue;
        group.insert(place, producer);
        has_grown = true;
      }
    }
  }
  return group;
}

}  // namespace

std::vector<std::vector<int32_t>> find_element_groups(
    const Graph& graph, const std::vector<bool>& is_element,
    const std::function<bool(const std::vector<int32_t>& nodes)>& fits) {
  // All different: by their last node or by their size.
  std::vector<std::vector<int32_t>> groups;
  std::vector<bool> is_inside(is_element.size(), false);
  for (int32_t last = graph.node_count() - 1; last >= 0; --last) {
    if (!is_element[static_cast<size_t>(last)]) continue;
    std::vector<int32_t> nodes = group_before(graph, is_element, last);
    // What stands within a group is a group's end too, if not one to be cut from the front.
    const bool ends_inside = is_inside[static_cast<size_t>(last)];
    bool has_fit = false;
    while (nodes.size() > 1) {
      if (fits(nodes)) {
        groups.push_back(nodes);
        for (const int32_t id : std::span(nodes).first(nodes.size() - 1)) {
          is_inside[static_cast<size_t>(id)] = true;
        }
        has_fit = true;
      }
      if (has_fit && ends_inside) break;
      nodes.erase(nodes.begin());
    }
  }
  std::sort(groups.begin(), groups.end(), [](const auto& left, const auto& right) {
    return left.size() != right.size() ? left.size() > right.size() : left < right;
  });
  return groups;
}

}  // namespace tessera::native
