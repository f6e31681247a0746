#include "choose/choice.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "choose/offered_chain_test.h"
#include "choose/price_offers.h"

namespace tessera {
namespace {

// x -> a, and two kernels of one backend for it.
class ChoiceInOrder : public OfferedChain {
 protected:
  ChoiceInOrder() : OfferedChain(1) {
    offer({0}).algorithm = "first";
    offer({0}).algorithm = "second";
  }

  ChoicePrices prices() {
    const tuning::TuningTask task{graph_, offers_, layouts_, registry_};
    const PricedOffers keyed(task, table_, 0);
    for (const auto& key : keyed.keys())
      table_.kernels.emplace(*key, costs_[key->candidate.algorithm]);
    PricedOffers prices(task, table_, 0);
    prices.look_up_guesses();
    return prices.choice_prices();
  }

  static tuning::Cost measured(double seconds) {
    const tuning::Timing timing{.seconds = seconds, .low = seconds, .high = seconds, .rounds = 3};
    return {.cold = timing, .warm = timing, .in_context = timing};
  }

  tuning::CostTable table_;
  std::map<std::string, tuning::Cost> costs_;
};

TEST_F(ChoiceInOrder, IsTheSameWhateverWasMeasured) {
  costs_ = {{"first", measured(1e-3)}, {"second", measured(1e-5)}};
  const ChoiceProblem offered = problem();
  const ChoiceTask unpriced(offered, std::nullopt, {});
  const ChoiceTask priced(offered, prices(), {});
  EXPECT_EQ(in_order(priced).chosen, choose(unpriced).placement.chosen);
  EXPECT_EQ(solve(priced).found.placement.chosen, std::vector<int>{1});
  EXPECT_EQ(choose(priced).placement.chosen, std::vector<int>{1});
}

TEST_F(ChoiceInOrder, StandsUnlessTheGainIsAsLargeAsTheTuningSays) {
  costs_ = {{"first", measured(1e-3)}, {"second", measured(0.9e-3)}};
  ChoiceProblem offered = problem();
  EXPECT_EQ(choose(ChoiceTask(offered, prices(), {})).placement.chosen, std::vector<int>{1});
  offered.rules.tuning.min_gain_ratio = 0.8;
  EXPECT_EQ(choose(ChoiceTask(offered, prices(), {})).placement.chosen, std::vector<int>{0});
}

TEST_F(ChoiceInOrder, LeavesOutWhatWasRefused) {
  costs_ = {{"first", measured(1e-6)}, {"second", measured(1e-3)}};
  costs_["first"].refusal = "it is wrong";
  const ChoiceProblem offered = problem();
  EXPECT_EQ(choose(ChoiceTask(offered, std::nullopt, {})).placement.chosen, std::vector<int>{0});
  EXPECT_EQ(in_order(ChoiceTask(offered, prices(), {})).chosen, std::vector<int>{1});
}

}  // namespace
}  // namespace tessera
