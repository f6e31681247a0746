#include "large_problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "base/containers/at.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kBranches = 64;
constexpr int kBranchNodes = 14;
constexpr int kDenseLayers = 12;

constexpr std::array kShapes = {
    GraphShape::Chain,        GraphShape::Residual,     GraphShape::Inception,
    GraphShape::Branches,     GraphShape::LongBranches, GraphShape::Dense,
    GraphShape::NarrowRandom, GraphShape::WideRandom,
};

class LargeProblemGenerator {
 public:
  explicit LargeProblemGenerator(const LargeProblemSize& size) : size_(size), engine_(size.seed) {
    problem_.layout_count = size.layouts;
  }

  PlacementProblem make(GraphShape shape) {
    int value = add_value();
    while (node_count() < size_.nodes) value = add_block(shape, value);
    add_groups();
    note_results();
    problem_.is_constant.assign(at(problem_.value_count), false);
    return std::move(problem_);
  }

 private:
  // The kind of a node decides its candidates and their prices.
  enum class Kind : uint8_t { Expensive, Cheap, OneLayout };

  // Uniform in [0, 1). Unlike the distributions of the standard library, it gives the same numbers
  // on every machine.
  double fraction() { return static_cast<double>(engine_()) / 4294967296.0; }
  bool happens(double probability) { return fraction() < probability; }
  int whole(int low, int high) { return low + static_cast<int>(fraction() * (high - low + 1)); }
  double spread(double low, double high) { return low * std::pow(high / low, fraction()); }
  int node_count() const { return static_cast<int>(problem_.nodes.size()); }
  // The second half of the layouts belongs to the second device.
  bool is_far(int layout) const { return size_.layouts > 2 && layout >= (size_.layouts + 1) / 2; }

  int add_value() {
    const int value = problem_.value_count++;
    const double seconds = spread(4e-6, 1e-4);
    std::vector<double>& row = problem_.conversion_prices.emplace_back();
    const int far = (size_.layouts + 1) / 2;
    for (int from = 0; from < size_.layouts; ++from) {
      for (int to = 0; to < size_.layouts; ++to) {
        const bool crosses = is_far(from) != is_far(to);
        const bool is_by_default = (from == 0 && to == far) || (from == far && to == 0);
        row.push_back(!crosses ? seconds : is_by_default ? 2e-5 + 3 * seconds : kInfinity);
      }
    }
    readers_.emplace_back();
    return value;
  }

  int add_node(Kind kind, std::vector<int> inputs) {
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    const int node = node_count();
    const int value = add_value();
    for (const int input : inputs) readers_[at(input)].push_back(node);
    problem_.nodes.push_back({std::move(inputs), {value}});
    kinds_.push_back(kind);
    least_.push_back(kInfinity);
    const double seconds = kind == Kind::Expensive ? spread(2e-5, 1e-3) : spread(2e-6, 4e-5);
    if (kind == Kind::OneLayout) {
      add_candidate({node}, seconds, 0, 0);
      return value;
    }
    for (int layout = 0; layout < size_.layouts; ++layout) {
      if (layout > 0 && happens(0.1)) continue;
      const double price = seconds * spread(0.5, 2);
      add_candidate({node}, price, layout, layout);
      // Another algorithm, with another price.
      if (happens(0.5)) add_candidate({node}, price * spread(0.8, 1.5), layout, layout);
      if (kind == Kind::Expensive && happens(0.3)) {
        add_candidate({node}, price * spread(1, 1.2), layout, whole(0, size_.layouts - 1));
      }
    }
    return value;
  }
  int add_expensive(int value) { return add_node(Kind::Expensive, {value}); }
  int add_cheap(int value) {
    return add_node(happens(0.05) ? Kind::OneLayout : Kind::Cheap, {value});
  }
  int join(std::vector<int> values) { return add_node(Kind::Cheap, std::move(values)); }

  int add_block(GraphShape shape, int value) {
    switch (shape) {
      case GraphShape::Chain:
        return add_cheap(add_cheap(add_expensive(value)));
      case GraphShape::Residual:
        return join(
            {value, add_expensive(add_cheap(add_expensive(add_cheap(add_expensive(value)))))});
      case GraphShape::Inception:
        return join({add_cheap(add_expensive(value)),
                     add_cheap(add_expensive(add_cheap(add_expensive(value)))),
                     add_cheap(add_expensive(add_cheap(add_expensive(value)))),
                     add_expensive(add_cheap(value))});
      case GraphShape::Branches:
        return add_branches(value, kBranchNodes);
      case GraphShape::LongBranches:
        return add_branches(value, (size_.nodes + kBranches - 1) / kBranches);
      case GraphShape::Dense:
        return add_dense_block(value);
      case GraphShape::NarrowRandom:
        return add_random(6);
      case GraphShape::WideRandom:
        return add_random(200);
    }
    return value;
  }

  int add_branches(int value, int nodes) {
    std::vector<int> ends;
    for (int branch = 0; branch < kBranches; ++branch) {
      int end = value;
      for (int node = 0; node < nodes; ++node)
        end = node % 2 == 0 ? add_expensive(end) : add_cheap(end);
      ends.push_back(end);
    }
    return join(std::move(ends));
  }

  int add_dense_block(int value) {
    std::vector<int> before = {value};
    for (int layer = 0; layer < kDenseLayers; ++layer) {
      before.push_back(add_expensive(add_cheap(add_expensive(add_cheap(join(before))))));
    }
    return add_expensive(join(before));
  }

  int add_random(int newest) {
    const auto some_value = [&] {
      return whole(std::max(0, problem_.value_count - newest), problem_.value_count - 1);
    };
    std::vector<int> inputs = {some_value()};
    if (happens(0.5)) inputs.push_back(some_value());
    if (inputs.size() > 1) return join(inputs);
    return happens(0.5) ? add_expensive(inputs[0]) : add_cheap(inputs[0]);
  }

  void add_groups() {
    for (int node = 0; node < node_count(); ++node) {
      if (kinds_[at(node)] != Kind::Expensive) continue;
      if (happens(0.7)) add_followers(node);
      if (happens(0.3)) add_siblings(node);
    }
  }

  // Groups of an expensive node and the one or two nodes that follow it. A value that nodes outside
  // of the group also read becomes an output of the group.
  void add_followers(int node) {
    std::vector<int> nodes = {node};
    while (nodes.size() < 3) {
      const std::vector<int>& readers = readers_[at(problem_.nodes[at(nodes.back())].outputs[0])];
      if (readers.empty() || readers.size() > 2 || kinds_[at(readers[0])] != Kind::Cheap) break;
      // If the follower has only one input, no path leaves the group and returns.
      if (problem_.nodes[at(readers[0])].inputs.size() > 1) break;
      nodes.push_back(readers[0]);
      add_group_candidates(nodes);
    }
  }

  // A group of two expensive nodes that read the same value. Two such groups can depend on each
  // other if a path leads from one node to the other's sibling.
  void add_siblings(int node) {
    const std::vector<int>& readers = readers_[at(problem_.nodes[at(node)].inputs[0])];
    const auto next = std::upper_bound(readers.begin(), readers.end(), node);
    if (next == readers.end() || kinds_[at(*next)] != Kind::Expensive) return;
    add_group_candidates({node, *next});
  }

  void add_group_candidates(const std::vector<int>& nodes) {
    double alone = 0;
    for (const int node : nodes) alone += least_[at(node)];
    for (int layout = 0; layout < size_.layouts; ++layout) {
      if (happens(0.4)) add_candidate(nodes, alone * spread(0.7, 1.5), layout, layout);
    }
  }

  void add_candidate(const std::vector<int>& nodes, double seconds, int from, int to) {
    PlacementCandidate made;
    made.seconds = seconds;
    made.nodes = nodes;
    // Numbers that are not used any more. Without them, the problems would not be those of
    // tests/solver/instances and bench/RESULTS.md.
    if (!happens(0.5)) fraction();
    std::vector<int> outputs;
    for (const int node : nodes) {
      outputs.push_back(problem_.nodes[at(node)].outputs[0]);
      least_[at(node)] = std::min(least_[at(node)], nodes.size() > 1 ? kInfinity : seconds);
    }
    std::vector<int> inputs;
    for (const int node : nodes) {
      for (const int value : problem_.nodes[at(node)].inputs) {
        if (!contains(outputs, value) && !contains(inputs, value)) inputs.push_back(value);
      }
    }
    for (const int value : inputs) made.inputs.push_back({value, from});
    for (const int value : outputs) {
      if (is_read_outside(value, nodes)) made.outputs.push_back({value, to});
    }
    problem_.candidates.push_back(std::move(made));
  }

  static bool contains(const std::vector<int>& set, int element) {
    return std::find(set.begin(), set.end(), element) != set.end();
  }

  bool is_read_outside(int value, const std::vector<int>& nodes) const {
    const std::vector<int>& readers = readers_[at(value)];
    return readers.empty() || std::any_of(readers.begin(), readers.end(),
                                          [&](int reader) { return !contains(nodes, reader); });
  }

  void note_results() {
    for (int value = 1; value < problem_.value_count; ++value) {
      if (readers_[at(value)].empty()) problem_.results.push_back(value);
    }
  }

  LargeProblemSize size_;
  std::mt19937 engine_;
  PlacementProblem problem_;
  std::vector<std::vector<int>> readers_;  // by value
  std::vector<Kind> kinds_;                // by node
  std::vector<double> least_;              // by node: lowest price of computing it alone
};

}  // namespace

std::span<const GraphShape> graph_shapes() { return kShapes; }

std::string shape_name(GraphShape shape) {
  switch (shape) {
    case GraphShape::Chain:
      return "chain";
    case GraphShape::Residual:
      return "residual";
    case GraphShape::Inception:
      return "inception";
    case GraphShape::Branches:
      return "branches";
    case GraphShape::LongBranches:
      return "long_branches";
    case GraphShape::Dense:
      return "dense";
    case GraphShape::NarrowRandom:
      return "narrow_random";
    case GraphShape::WideRandom:
      return "wide_random";
  }
  return "";
}

PlacementProblem make_large_problem(GraphShape shape, const LargeProblemSize& size) {
  return LargeProblemGenerator(size).make(shape);
}

}  // namespace tessera
