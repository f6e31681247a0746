#include "import/onnx/graph_builder.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

namespace tessera::onnx_import {
namespace {

using Edges = std::vector<std::vector<size_t>>;

// For each node, the nodes whose values it reads.
Edges sources_of(const std::vector<NodeNames>& nodes) {
  std::unordered_map<std::string_view, size_t> makers;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& name : nodes[node].made) {
      if (!name.empty()) makers.emplace(name, node);
    }
  }
  Edges sources(nodes.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& name : nodes[node].read) {
      const auto maker = makers.find(name);
      if (maker != makers.end()) sources[node].push_back(maker->second);
    }
  }
  return sources;
}

// Follows sources among the nodes that could not be ordered. Each has a source that is not ordered
// either, so the walk must meet itself.
std::vector<size_t> find_cycle(const Edges& sources, const std::vector<size_t>& waiting) {
  const auto is_stuck = [&](size_t node) { return waiting[node] > 0; };
  std::vector<size_t> path;
  std::vector<bool> is_on_path(sources.size(), false);
  const auto first = std::find_if(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; });
  auto node = static_cast<size_t>(first - waiting.begin());
  while (!is_on_path[node]) {
    is_on_path[node] = true;
    path.push_back(node);
    node = *std::find_if(sources[node].begin(), sources[node].end(), is_stuck);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), node));
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

Order order_nodes(const std::vector<NodeNames>& nodes) {
  const Edges sources = sources_of(nodes);
  Edges readers(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);  // number of sources that are not ordered yet
  // The smallest index first, so that a file in topological order keeps its order.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t node = 0; node < nodes.size(); ++node) {
    waiting[node] = sources[node].size();
    for (const size_t source : sources[node]) readers[source].push_back(node);
    if (waiting[node] == 0) ready.push(node);
  }
  Order order;
  while (!ready.empty()) {
    const size_t node = ready.top();
    ready.pop();
    order.nodes.push_back(node);
    for (const size_t reader : readers[node]) {
      if (--waiting[reader] == 0) ready.push(reader);
    }
  }
  if (order.nodes.size() < nodes.size()) order.cycle = find_cycle(sources, waiting);
  return order;
}

}  // namespace tessera::onnx_import
