#include "choose/placer.h"

#include <gtest/gtest.h>

#include "backend/test_plugins.h"
#include "choose/price_offers.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

using testing_plugins::open_mirror;
using testing_plugins::Proposals;

// x -> a, and two kernels of one backend for it.
class ChoiceInOrder : public testing::Test {
 protected:
  ChoiceInOrder() : plugin_(open_mirror([](const auto&, Proposals&) {})), layouts_({}) {
    GraphBuilder builder(registry_);
    builder.input("x", float_type(Shape{4})).node("a", "Relu", {"x"}, {"va"}).output("va");
    graph_ = builder.graph();
    for (Value& value : graph_.values) value.type = float_type(Shape{4});
    for (const char* algorithm : {"first", "second"}) {
      tessera::Candidate candidate{
          .plugin = plugin_, .algorithm = algorithm, .optimistic_seconds = 1e-6};
      candidate.nodes.push_back({0});
      candidate.inputs.push_back({.value = graph_.inputs[0], .layout = kDefaultLayout});
      candidate.outputs.push_back({.value = graph_.outputs[0], .layout = kDefaultLayout});
      offers_.candidates.push_back(candidate);
    }
  }

  void set_prices(Placer& placer) {
    const tuning::TuningTask task{graph_, offers_, layouts_, registry_};
    const PricedOffers keyed(task, table_, 0);
    for (const auto& key : keyed.keys()) table_.kernels.emplace(*key, costs_[key->algorithm]);
    PricedOffers prices(task, table_, 0);
    prices.look_up_guesses();
    placer.set_prices(prices);
  }

  static tuning::Cost measured(double seconds) {
    const tuning::Timing timing{.seconds = seconds, .low = seconds, .high = seconds, .rounds = 3};
    return {.cold = timing, .warm = timing, .in_context = timing};
  }

  ops::Registry registry_ = ops::make_registry();
  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  tessera::Graph graph_;
  Offers offers_;
  tuning::CostTable table_;
  std::map<std::string, tuning::Cost> costs_;
};

TEST_F(ChoiceInOrder, IsTheSameWhateverWasMeasured) {
  costs_ = {{"first", measured(1e-3)}, {"second", measured(1e-5)}};
  Placer placer(graph_, offers_, layouts_, false);
  const std::vector<int> without_prices = placer.choose().chosen;
  set_prices(placer);
  EXPECT_EQ(placer.in_order().chosen, without_prices);
  EXPECT_EQ(placer.solve().chosen, std::vector<int>{1});
  EXPECT_EQ(placer.choose().chosen, std::vector<int>{1});
}

TEST_F(ChoiceInOrder, LeavesOutWhatWasRefused) {
  costs_ = {{"first", measured(1e-6)}, {"second", measured(1e-3)}};
  costs_["first"].refusal = "it is wrong";
  Placer placer(graph_, offers_, layouts_, false);
  EXPECT_EQ(placer.choose().chosen, std::vector<int>{0});
  set_prices(placer);
  EXPECT_EQ(placer.in_order().chosen, std::vector<int>{1});
}

}  // namespace
}  // namespace tessera
