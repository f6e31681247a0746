#include "choose/select_offers.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "base/errors/error_test.h"
#include "choose/choice.h"
#include "choose/offered_chain_test.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// x -> a -> b -> c, and the choice among what each test offers.
class CoveringChoice : public OfferedChain {
 protected:
  CoveringChoice() : OfferedChain(3) {}

  std::vector<int> choose() const {
    const ChoiceProblem offered = problem();
    const ChoiceTask task(offered, std::nullopt, {});
    return choose_covering(task, offers_, graph_).placement.chosen;
  }
  std::string error() const {
    return error_of([&] { choose(); });
  }
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
