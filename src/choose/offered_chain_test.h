// A chain of nodes with the offers of one backend, for tests of the choice among offers.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "backend/test_plugins.h"
#include "base/containers/at.h"
#include "choose/choice_problem.h"
#include "graph/graph.h"
#include "ops/graph_test.h"
#include "ops/registry.h"

namespace tessera {

// x -> a -> b -> c, or less. There are no offers yet.
class OfferedChain : public testing::Test {
 protected:
  // `nodes`: 1 to 3.
  explicit OfferedChain(int nodes)
      : plugin_(testing_plugins::open_mirror([](const auto&, testing_plugins::Proposals&) {})),
        layouts_({}) {
    constexpr std::array kOps = {"Relu", "Abs", "Neg"};
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{4}));
    std::string last = "x";
    for (int node = 0; node < nodes; ++node) {
      const std::string name(1, static_cast<char>('a' + node));
      builder.node(name, kOps.at(at(node)), {last}, {"v" + name});
      last = "v" + name;
    }
    builder.output(last);
    graph_ = builder.graph();
    for (Value& value : graph_.values) value.type = float_type(Shape{4});
  }

  // Offers to compute `nodes` (ascending) as one group, which reads the input of the first node and
  // produces the output of the last one.
  Candidate& offer(const std::vector<int>& nodes, double seconds = 1e-6) {
    Candidate candidate{.plugin = plugin_, .optimistic_seconds = seconds};
    for (const int index : nodes) candidate.nodes.push_back({index});
    const ValueId from = graph_[candidate.nodes.front()].inputs[0];
    const ValueId to = graph_[candidate.nodes.back()].outputs[0];
    candidate.inputs.push_back({.value = from, .layout = kDefaultLayout});
    candidate.outputs.push_back({.value = to, .layout = kDefaultLayout});
    offers_.candidates.push_back(candidate);
    return offers_.candidates.back();
  }

  ChoiceProblem problem() const { return make_choice_problem(graph_, offers_, layouts_, {}); }

  ops::Registry registry_ = ops::make_registry();
  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  Graph graph_;
  Offers offers_;
};

}  // namespace tessera
