#include "random_problem.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tessera {
namespace {

class RandomProblemGenerator {
 public:
  RandomProblemGenerator(unsigned seed, const RandomProblemSize& size)
      : engine_(seed), size_(size) {}

  PlacementProblem make() {
    problem_.layout_count = whole(2, size_.max_layouts);
    add_nodes();
    add_conversions();
    for (int node = 0; node < node_count(); ++node) {
      const int ways = whole(1, 3);
      for (int way = 0; way < ways; ++way) add_candidate({node});
    }
    const int groups = whole(0, size_.max_groups);
    for (int group = 0; group < groups; ++group) add_group();
    add_crossing_groups();
    problem_.is_forbidden.assign(problem_.candidates.size(), false);
    if (one_in(4)) problem_.workspace_bytes_limit = whole(5, 9);
    if (one_in(4)) pin_a_node();
    return std::move(problem_);
  }

 private:
  int whole(int low, int high) { return low + static_cast<int>(engine_() % (high - low + 1U)); }
  bool one_in(int count) { return whole(1, count) == 1; }
  int node_count() const { return static_cast<int>(problem_.nodes.size()); }

  // Value 0 is an input and value 1 a constant. Each node produces one further value, some produce
  // two.
  void add_nodes() {
    problem_.value_count = 2;
    problem_.is_constant = {false, true};
    const int nodes = whole(1, size_.max_nodes);
    for (int node = 0; node < nodes; ++node) {
      PlacementNode made;
      std::set<int> read;
      const int reads = whole(1, 2);
      for (int count = 0; count < reads; ++count) {
        // Mostly a recent value, so that chains arise.
        const int newest = problem_.value_count - 1;
        read.insert(one_in(3) ? whole(0, newest) : whole(std::max(0, newest - 2), newest));
      }
      made.inputs.assign(read.begin(), read.end());
      const int makes = one_in(5) ? 2 : 1;
      for (int count = 0; count < makes; ++count) {
        made.outputs.push_back(problem_.value_count++);
        problem_.is_constant.push_back(false);
      }
      problem_.nodes.push_back(std::move(made));
    }
    std::vector<bool> is_read(static_cast<size_t>(problem_.value_count), false);
    for (const PlacementNode& node : problem_.nodes) {
      for (const int value : node.inputs) is_read[static_cast<size_t>(value)] = true;
    }
    for (int value = 2; value < problem_.value_count; ++value) {
      if (!is_read[static_cast<size_t>(value)] || one_in(8)) problem_.results.push_back(value);
    }
  }

  // If there are two devices, the second half of the layouts belongs to the second device.
  // Conversions between devices are possible only between the first layouts of the two, and
  // expensive.
  void add_conversions() {
    const int layouts = problem_.layout_count;
    const int far = layouts > 2 && one_in(2) ? (layouts + 1) / 2 : layouts;
    for (int value = 0; value < problem_.value_count; ++value) {
      std::vector<double>& row = problem_.conversion_prices.emplace_back();
      for (int cell = 0; cell < layouts * layouts; ++cell) {
        const int from = cell / layouts;
        const int to = cell % layouts;
        const bool crosses = (from < far) != (to < far);
        const bool is_missing = crosses ? from + to != far : one_in(6);
        const int price = whole(1, 9) + (crosses ? 3 : 0);
        row.push_back(is_missing ? std::numeric_limits<double>::infinity() : price);
      }
    }
  }

  bool is_inside(const std::vector<int>& nodes, int node) const {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }

  void add_candidate(const std::vector<int>& nodes) {
    PlacementCandidate made;
    made.nodes = nodes;
    made.seconds = static_cast<double>(whole(1, 12) * (static_cast<int>(nodes.size()) + 1) / 2);
    made.workspace_bytes = whole(0, 9);
    const int layout = one_in(2) ? 0 : whole(0, problem_.layout_count - 1);
    const auto some_layout = [&] {
      return one_in(4) ? whole(0, problem_.layout_count - 1) : layout;
    };
    std::set<int> inputs;
    std::set<int> made_inside;
    for (const int node : nodes) {
      const PlacementNode& one = problem_.nodes[static_cast<size_t>(node)];
      inputs.insert(one.inputs.begin(), one.inputs.end());
      made_inside.insert(one.outputs.begin(), one.outputs.end());
    }
    for (const int value : inputs) {
      if (!made_inside.contains(value)) made.inputs.push_back({value, some_layout()});
    }
    for (const int value : made_inside) {
      if (is_wanted_outside(value, nodes)) made.outputs.push_back({value, some_layout()});
    }
    problem_.candidates.push_back(std::move(made));
  }

  // A value that is read only inside of the group is not an output. Sometimes one that is also read
  // outside is not an output either: then its readers need another candidate to compute it.
  bool is_wanted_outside(int value, const std::vector<int>& nodes) {
    bool is_read_inside = false;
    bool is_read_outside = std::find(problem_.results.begin(), problem_.results.end(), value) !=
                           problem_.results.end();
    for (int node = 0; node < node_count(); ++node) {
      const PlacementNode& reader = problem_.nodes[static_cast<size_t>(node)];
      if (!is_inside(reader.inputs, value)) continue;
      (is_inside(nodes, node) ? is_read_inside : is_read_outside) = true;
    }
    if (!is_read_inside) return true;
    return is_read_outside && !one_in(3);
  }

  // A convex group of two or three nodes that are near each other.
  void add_group() {
    std::set<int> nodes;
    const int first = whole(0, node_count() - 1);
    const int count = whole(2, 3);
    for (int tries = 0; tries < 10 && static_cast<int>(nodes.size()) < count; ++tries) {
      nodes.insert(std::min(first + whole(0, 3), node_count() - 1));
    }
    if (nodes.size() < 2 || !is_convex(nodes)) return;
    add_candidate({nodes.begin(), nodes.end()});
  }

  // For two edges a -> b and c -> d: the groups {a, d} and {c, b}, which depend on each other. They
  // are cheap, so that the cheapest choice without this condition often contains both.
  void add_crossing_groups() {
    std::vector<std::pair<int, int>> edges;
    for (int from = 0; from < node_count(); ++from) {
      for (int to = from + 1; to < node_count(); ++to) {
        if (is_inside(problem_.nodes[static_cast<size_t>(to)].inputs,
                      problem_.nodes[static_cast<size_t>(from)].outputs[0])) {
          edges.emplace_back(from, to);
        }
      }
    }
    for (const auto& [one, its_reader] : edges) {
      for (const auto& [other, other_reader] : edges) {
        const std::set<int> nodes = {one, its_reader, other, other_reader};
        if (nodes.size() < 4) continue;
        const std::set<int> left = {one, other_reader};
        const std::set<int> right = {other, its_reader};
        if (!is_convex(left) || !is_convex(right) || one_in(2)) continue;
        for (const std::set<int>& group : {left, right}) {
          add_candidate({group.begin(), group.end()});
          problem_.candidates.back().seconds = whole(1, 3);
        }
        return;
      }
    }
  }

  bool is_convex(const std::set<int>& nodes) const {
    // `outside`: values that depend on the group through a node outside of it.
    std::set<int> inside;
    std::set<int> outside;
    for (int node = 0; node < node_count(); ++node) {
      const PlacementNode& one = problem_.nodes[static_cast<size_t>(node)];
      const auto reads = [&](const std::set<int>& values) {
        return std::any_of(one.inputs.begin(), one.inputs.end(),
                           [&](int value) { return values.contains(value); });
      };
      if (nodes.contains(node)) {
        if (reads(outside)) return false;
        inside.insert(one.outputs.begin(), one.outputs.end());
      } else if (reads(inside) || reads(outside)) {
        outside.insert(one.outputs.begin(), one.outputs.end());
      }
    }
    return true;
  }

  // Like a pin of the user: forbids every other candidate of the node.
  void pin_a_node() {
    const auto pinned = engine_() % problem_.candidates.size();
    const int node = problem_.candidates[pinned].nodes[0];
    for (size_t index = 0; index < problem_.candidates.size(); ++index) {
      problem_.is_forbidden[index] =
          index != pinned && is_inside(problem_.candidates[index].nodes, node);
    }
  }

  std::mt19937 engine_;
  RandomProblemSize size_;
  PlacementProblem problem_;
};

}  // namespace

PlacementProblem make_random_problem(unsigned seed, const RandomProblemSize& size) {
  return RandomProblemGenerator(seed, size).make();
}

}  // namespace tessera
