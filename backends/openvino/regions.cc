#include "regions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace tessera::openvino {

namespace {

// The number of cuts in halves: halves, quarters, eighths.
constexpr int kDepth = 3;
// Nodes that take no time have a small amount of work, so that work always grows.
constexpr double kMinWork = 1;

size_t at(int32_t index) { return static_cast<size_t>(index); }

double work_of(const plugin::Node& node) {
  const auto flops = static_cast<double>(std::max<int64_t>(node.flops(), 0));
  return kMinWork + flops + static_cast<double>(std::max<int64_t>(node.bytes(), 0));
}

double work_of(const plugin::Graph& graph, const Region& region) {
  return std::accumulate(region.begin(), region.end(), 0.0,
                         [&](double sum, int32_t node) { return sum + work_of(graph.node(node)); });
}

// For each node, the maximum number of changes between supported and unsupported nodes on a path
// from the inputs. Nodes of one kind with the same number have no node of the other kind between
// them, because a path through it would lead to a higher number.
std::vector<int> count_changes(const plugin::Graph& graph, const std::vector<bool>& is_supported) {
  std::vector<int> changes(is_supported.size(), 0);
  for (const plugin::Node& node : graph.nodes()) {
    for (size_t index = 0; index < node.input_count(); ++index) {
      const int32_t producer = node.input(index).producer();
      if (producer < 0) continue;
      const bool is_change = is_supported[at(producer)] != is_supported[at(node.id())];
      changes[at(node.id())] =
          std::max(changes[at(node.id())], changes[at(producer)] + (is_change ? 1 : 0));
    }
  }
  return changes;
}

int32_t root_of(std::vector<int32_t>& parents, int32_t node) {
  while (parents[at(node)] != node) node = parents[at(node)] = parents[at(parents[at(node)])];
  return node;
}

std::vector<Region> connected_parts(const plugin::Graph& graph,
                                    const std::vector<bool>& is_supported) {
  const std::vector<int> changes = count_changes(graph, is_supported);
  std::vector<int32_t> parents(is_supported.size());
  std::iota(parents.begin(), parents.end(), 0);
  for (const plugin::Node& node : graph.nodes()) {
    for (size_t index = 0; index < node.input_count(); ++index) {
      const int32_t producer = node.input(index).producer();
      if (producer < 0 || changes[at(producer)] != changes[at(node.id())]) continue;
      if (is_supported[at(producer)] != is_supported[at(node.id())]) continue;
      parents[at(root_of(parents, producer))] = root_of(parents, node.id());
    }
  }
  std::map<int32_t, Region> by_root;
  for (int32_t node = 0; node < graph.node_count(); ++node) {
    if (is_supported[at(node)]) by_root[root_of(parents, node)].push_back(node);
  }
  std::vector<Region> parts;
  for (auto& [root, nodes] : by_root) parts.push_back(std::move(nodes));
  return parts;
}

// The positions at which a part can be cut: before its node number `position`, only one value is
// computed by nodes of the part and read later. `work` is the work before the cut.
struct Cut {
  size_t position = 0;
  double work = 0;
};

std::vector<Cut> find_cuts(const plugin::Graph& graph, const Region& part) {
  // For each value, the remaining reads by nodes of the part.
  std::map<int32_t, int> reads;
  const auto for_inputs = [&](int32_t id, const auto& visit) {
    const plugin::Node node = graph.node(id);
    for (size_t index = 0; index < node.input_count(); ++index) {
      const plugin::Value value = node.input(index);
      const bool is_inside = std::binary_search(part.begin(), part.end(), value.producer());
      if (is_inside) visit(value.id());
    }
  };
  for (const int32_t id : part) for_inputs(id, [&](int32_t value) { ++reads[value]; });
  std::vector<Cut> cuts;
  double work = 0;
  int live = 0;
  for (size_t position = 0; position < part.size(); ++position) {
    if (position > 0 && live == 1) cuts.push_back({position, work});
    for_inputs(part[position], [&](int32_t value) {
      if (--reads[value] == 0) --live;
    });
    const plugin::Node node = graph.node(part[position]);
    for (size_t index = 0; index < node.output_count(); ++index) {
      const auto found = reads.find(node.output(index).id());
      if (found != reads.end() && found->second > 0) ++live;
    }
    work += work_of(node);
  }
  return cuts;
}

class Splitter {
 public:
  Splitter(const plugin::Graph& graph, const Region& part, std::vector<Region>& regions)
      : part_(part), cuts_(find_cuts(graph, part)), regions_(regions) {
    work_ = work_of(graph, part);
  }

  void split() { split(0, part_.size(), 0, work_, kDepth); }

 private:
  // Adds both sides of the cut nearest to half of the work between two positions.
  void split(size_t begin, size_t end, double work_before, double work_until, int depth) {
    if (depth == 0) return;
    const double middle = (work_before + work_until) / 2;
    const Cut* best = nullptr;
    for (const Cut& cut : cuts_) {
      if (cut.position < begin + kMinNodes || cut.position + kMinNodes > end) continue;
      const bool is_nearer =
          best == nullptr || std::abs(cut.work - middle) < std::abs(best->work - middle);
      if (is_nearer) best = &cut;
    }
    if (best == nullptr) return;
    add(begin, best->position);
    add(best->position, end);
    split(begin, best->position, work_before, best->work, depth - 1);
    split(best->position, end, best->work, work_until, depth - 1);
  }

  void add(size_t begin, size_t end) {
    regions_.emplace_back(part_.begin() + static_cast<std::ptrdiff_t>(begin),
                          part_.begin() + static_cast<std::ptrdiff_t>(end));
  }

  const Region& part_;
  std::vector<Cut> cuts_;
  std::vector<Region>& regions_;
  double work_ = 0;
};

}  // namespace

std::vector<Region> find_regions(const plugin::Graph& graph,
                                 const std::vector<bool>& is_supported) {
  std::vector<Region> parts = connected_parts(graph, is_supported);
  const bool is_whole =
      std::find(is_supported.begin(), is_supported.end(), false) == is_supported.end();
  std::vector<Region> regions;
  if (is_whole && !is_supported.empty()) {
    Region all(is_supported.size());
    std::iota(all.begin(), all.end(), 0);
    // Parts that are not connected are computed together first.
    if (parts.size() == 1) parts.clear();
    parts.insert(parts.begin(), std::move(all));
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const Region& left, const Region& right) {
    return work_of(graph, left) > work_of(graph, right);
  });
  for (const Region& part : parts) {
    const bool is_all = part.size() == is_supported.size();
    if (!is_all && (part.size() < kMinNodes || regions.size() >= kMaxParts)) continue;
    regions.push_back(part);
  }
  const size_t part_count = regions.size();
  for (size_t index = 0; index < part_count; ++index) {
    const Region part = regions[index];
    Splitter(graph, part, regions).split();
  }
  return regions;
}

}  // namespace tessera::openvino
