// Placement problems for tests: chains of nodes, and random branches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/containers/at.h"
#include "base/random_below_test.h"
#include "place/placement.h"

namespace tessera {

// Node i reads value i and produces value i + 1; the last value is a result. A conversion between
// the two layouts takes a second. There are no candidates yet.
inline PlacementProblem chain_problem(int nodes) {
  PlacementProblem problem;
  problem.value_count = nodes + 1;
  problem.layout_count = 2;
  for (int node = 0; node < nodes; ++node) problem.nodes.push_back({{node}, {node + 1}});
  problem.conversion_seconds.assign(at(nodes) + 1, 1);
  problem.conversion_hops = {{0, 1}, {1, 0}};
  problem.is_constant.assign(at(nodes) + 1, false);
  problem.results = {nodes};
  return problem;
}

// A candidate for consecutive nodes of chain_problem(), with both ports in `layout`.
inline PlacementCandidate covering(std::vector<int> nodes, int layout, int preference,
                                   double seconds) {
  PlacementCandidate candidate{.preference = preference, .seconds = seconds, .nodes = nodes};
  candidate.inputs = {{nodes.front(), layout}};
  candidate.outputs = {{nodes.back() + 1, layout}};
  return candidate;
}

// As chain_problem(), with up to `max_nodes` nodes, each of which reads two of the values before
// it. There are two candidates for each node, and up to `max_groups` for random groups, which need
// not be convex.
inline PlacementProblem random_branches(std::mt19937& random, int max_nodes, int max_groups) {
  const auto below = [&](int limit) { return random_below(random, limit); };
  const int nodes = 1 + below(max_nodes);
  PlacementProblem problem = chain_problem(nodes);
  for (int node = 1; node < nodes; ++node) {
    problem.nodes[at(node)].inputs = {below(node + 1), below(node + 1)};
  }
  const auto offer = [&](std::vector<int> members) {
    PlacementCandidate candidate{.preference = below(3), .seconds = 0.1 * (1 + below(40))};
    for (const int node : members) {
      for (const int value : problem.nodes[at(node)].inputs) {
        if (std::find(members.begin(), members.end(), value - 1) == members.end()) {
          candidate.inputs.push_back({value, below(2)});
        }
      }
      candidate.outputs.push_back({node + 1, below(2)});
    }
    candidate.nodes = std::move(members);
    problem.candidates.push_back(std::move(candidate));
  };
  for (int node = 0; node < nodes; ++node) {
    offer({node});
    offer({node});
  }
  for (int group = 0; group < max_groups; ++group) {
    std::vector<int> members;
    for (int node = 0; node < nodes; ++node) {
      if (below(3) == 0) members.push_back(node);
    }
    if (!members.empty()) offer(std::move(members));
  }
  return problem;
}

// For messages of errors.
inline std::vector<std::string> node_names(const PlacementProblem& problem) {
  return std::vector<std::string>(problem.nodes.size(), "node");
}

}  // namespace tessera
