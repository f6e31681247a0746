#include "choose/select_offers.h"

#include <gmock/gmock.h>

#include "backend/test_plugins.h"
#include "choose/placer.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_plugins::open_mirror;
using testing_plugins::Proposals;

// x -> a -> b -> c, and the offers of one backend for groups of these nodes.
class CoveringChoice : public testing::Test {
 protected:
  CoveringChoice() : plugin_(open_mirror([](const auto&, Proposals&) {})), layouts_({}) {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{4}))
        .node("a", "Relu", {"x"}, {"va"})
        .node("b", "Abs", {"va"}, {"vb"})
        .node("c", "Neg", {"vb"}, {"vc"})
        .output("vc");
    graph_ = builder.graph();
    for (Value& value : graph_.values) value.type = float_type(Shape{4});
  }

  void offer(const std::vector<int>& nodes, double seconds = 1e-6) {
    tessera::Candidate candidate{.plugin = plugin_, .optimistic_seconds = seconds};
    for (const int index : nodes) candidate.nodes.push_back({index});
    // The nodes form a chain: values between them are internal to the group.
    const ValueId from = graph_[candidate.nodes.front()].inputs[0];
    const ValueId to = graph_[candidate.nodes.back()].outputs[0];
    candidate.inputs.push_back({.value = from, .layout = kDefaultLayout});
    candidate.outputs.push_back({.value = to, .layout = kDefaultLayout});
    offers_.candidates.push_back(candidate);
  }

  Placer placer() const { return {graph_, offers_, layouts_, false}; }
  std::vector<int> choose() const {
    Placer made = placer();
    return choose_covering(made, offers_, graph_).chosen;
  }
  std::string error() const {
    return error_of([&] { choose(); });
  }

  ops::Registry registry_ = ops::make_registry();
  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  tessera::Graph graph_;
  Offers offers_;
};

TEST_F(CoveringChoice, NamesANodeThatNobodyServes) {
  offer({0});
  offer({2});
  offers_.refusals = {{0, "mirror", NodeId{1}, "it is too small"},
                      {0, "mirror", NodeId{1}, "it is too small"},
                      {1, "other", NodeId{0}, "of another node"}};
  EXPECT_EQ(error(),
            "Unsupported: node 'b' (Abs): no backend can compute this node; mirror: it is too "
            "small");
}

TEST_F(CoveringChoice, NamesWhatIsOfferedWhereGroupsContradict) {
  offer({0, 1});
  offer({1, 2});
  offers_.refusals = {{1, "other", NodeId{2}, "it is too small"}};
  EXPECT_THAT(error(), AllOf(HasSubstr("node 'c' (Neg): no choice was found"),
                             HasSubstr("mirror offers it with node 'b' (Abs)"),
                             HasSubstr("other: it is too small")));
}

TEST_F(CoveringChoice, NamesGroupsThatWouldWaitForEachOther) {
  offer({0, 2});
  offer({1});
  EXPECT_THAT(error(), AllOf(HasSubstr("no choice was found"), HasSubstr("mirror offers it")));
}

TEST_F(CoveringChoice, TellsOnlyOfWhatMayBeChosen) {
  offer({0});
  offer({1});
  offer({2});
  offer({1, 2});
  const std::vector<bool> is_forbidden = {false, true, false, false};
  const std::string text = explain_uncovered(offers_, graph_, NodeId{1}, is_forbidden).what();
  EXPECT_THAT(text, AllOf(HasSubstr("with node 'c' (Neg)"), Not(HasSubstr("alone"))));
}

TEST_F(CoveringChoice, IsFoundThoughTheLargestGroupLeavesANodeOver) {
  offer({0, 1});
  offer({1, 2});
  offer({0});
  EXPECT_THAT(choose(), testing::ElementsAre(2, 1));
}

}  // namespace
}  // namespace tessera
