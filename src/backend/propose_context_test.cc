// Tests plugin::ProposeContext of tessera/backend_propose.h by what the host receives.

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/test_plugins.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

using plugin::Proposals;
using plugin::ProposeContext;
using plugin::ProposeOptions;
using testing_plugins::open_mirror;
using testing_plugins::relu_candidate;

// The answers for x -> Relu -> y -> Neg -> z -> Exp: "node: taken" or "node: reason", in order. If
// `wanted` is given, only those candidates are requested.
std::vector<std::string> answers(const std::function<void(ProposeContext& context)>& propose,
                                 const std::vector<CandidateId>* wanted = nullptr) {
  GraphBuilder builder(all_ops());
  builder.input("x", float_type(Shape{2, 3}))
      .node("0", "Relu", {"x"}, {"y"})
      .node("1", "Neg", {"y"}, {"z"})
      .node("2", "Exp", {"z"}, {"e"})
      .output("e");
  tessera::Graph graph = builder.graph();
  for (Value& value : graph.values) value.type = float_type(Shape{2, 3});
  const tessera_graph view(graph, all_ops());
  const std::vector<std::shared_ptr<const Plugin>> plugins = {
      open_mirror([&](const plugin::Graph& given, Proposals& proposals) {
        ProposeOptions options;
        if (wanted != nullptr) options.wanted.emplace();
        for (size_t index = 0; wanted != nullptr && index < wanted->size(); ++index) {
          const CandidateId& one = (*wanted)[index];
          options.wanted->push_back({one.nodes, one.algorithm, one.ports});
        }
        ProposeContext context(given, options, proposals);
        propose(context);
        context.report_refusals("it does not know this op");
      })};
  const Offers offers = collect_offers(view, plugins, LayoutTable(plugins), {.wanted = wanted});
  std::multiset<std::string> reported;
  for (const tessera::Candidate& candidate : offers.candidates) {
    reported.insert(std::to_string(candidate.nodes[0].index) + ": taken");
  }
  for (const Refusal& refusal : offers.refusals) {
    reported.insert(std::to_string(refusal.node.index) + ": " + refusal.reason);
  }
  return {reported.begin(), reported.end()};
}

plugin::Candidate plain_candidate(const plugin::Node& node) {
  return relu_candidate(node, TESSERA_LAYOUT_DEFAULT);
}

TEST(ProposeContext, RefusesWhatNobodySpokeOf) {
  EXPECT_THAT(answers([](ProposeContext& context) {
                context.for_each({"Relu", "Exp"}, [&](const plugin::Node& node) {
                  context.add(plain_candidate(node));
                });
              }),
              ElementsAre("0: taken", "1: it does not know this op", "2: taken"));
}

TEST(ProposeContext, TheFirstReasonStands) {
  EXPECT_THAT(answers([](ProposeContext& context) {
                context.refuse(1, "too small");
                context.refuse(1, "too large");
                context.for_each({"Neg", "Relu"}, [](const plugin::Node& node) {
                  throw std::runtime_error("no " + std::string(node.op()));
                });
              }),
              ElementsAre("0: no Relu", "1: too small", "2: it does not know this op"));
}

TEST(ProposeContext, WhatOneFamilyRefusesAnotherMayTakeBeforeOrAfter) {
  EXPECT_THAT(answers([](ProposeContext& context) {
                context.refuse(0, "not alone");
                context.add(plain_candidate(context.graph().node(0)));
                context.add(plain_candidate(context.graph().node(2)));
                context.refuse(2, "not again");
              }),
              ElementsAre("0: taken", "1: it does not know this op", "2: taken"));
}

TEST(ProposeContext, EstimatesAreBoundByWorkOrByMemory) {
  answers([](ProposeContext& context) {
    const double work = context.optimistic_seconds(1e12, 0);
    const double memory = context.optimistic_seconds(0, 1e9);
    EXPECT_GT(work, 0);
    EXPECT_GT(memory, 0);
    EXPECT_EQ(context.optimistic_seconds(1e12, 1e9), std::max(work, memory));
    ProposeOptions four;
    four.threads = 4;
    Proposals nobody(nullptr);
    const ProposeContext wider(context.graph(), four, nobody);
    EXPECT_EQ(wider.optimistic_seconds(1e12, 0), work / 4);
    EXPECT_EQ(wider.optimistic_seconds(0, 1e9), memory);
  });
}

TEST(ProposeContext, PassesOverWhatIsNotWanted) {
  const std::vector<CandidateId> wanted = {
      {{1}, "mirror", "relu in row_major", "row_major -> row_major", 1},
      {{2}, "mirror", "other", "", 1}};
  std::vector<int32_t> visited;
  EXPECT_THAT(answers(
                  [&](ProposeContext& context) {
                    context.for_each({"Relu", "Neg", "Exp"}, [&](const plugin::Node& node) {
                      visited.push_back(node.id());
                      context.add(plain_candidate(node));
                    });
                    EXPECT_TRUE(context.is_wanted(std::vector<int32_t>{1}));
                    EXPECT_FALSE(context.is_wanted(std::vector<int32_t>{1, 2}));
                    EXPECT_TRUE(context.is_wanted({2}, "other"));
                    EXPECT_FALSE(context.is_wanted({2}, ""));
                    const auto asked = context.wanted_for({1});
                    ASSERT_EQ(asked.size(), 1U);
                    EXPECT_EQ(asked.front()->ports, "row_major -> row_major");
                    EXPECT_TRUE(context.wanted_for({0}).empty());
                  },
                  &wanted),
              ElementsAre("1: taken"));
  EXPECT_THAT(visited, ElementsAre(1, 2)) << "0 is in no candidate that is wanted";
}

TEST(ProposeContext, PortsAreTextThatNamesLayoutsAndPacks) {
  plugin::Candidate candidate;
  candidate.inputs = {{.value = 0, .layout = "nhwc"}, {.value = 1}};
  candidate.inputs[1].pack.emplace().id = "mylib:wide";
  candidate.outputs = {{.value = 2, .layout = "nchw16c"}};
  EXPECT_EQ(plugin::ports_text(candidate), "nhwc row_major:mylib:wide -> nchw16c");
}

}  // namespace
}  // namespace tessera
