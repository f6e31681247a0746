#include "choose/fit_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "choose/choice.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// A chain: each node reads the output of the one before and produces 256 bytes, also the last.
class Chain {
 public:
  explicit Chain(int nodes = 3) {
    for (int value = 0; value <= nodes; ++value) {
      graph_.values.push_back({.name = "value" + std::to_string(value),
                               .type = Type::tensor(DataType::Float32, Shape{Dim(64)})});
    }
    for (int node = 0; node < nodes; ++node) {
      graph_.nodes.push_back({.name = std::to_string(node),
                              .op = "Op",
                              .inputs = {ValueId{node}},
                              .outputs = {ValueId{node + 1}}});
    }
    graph_.inputs = {ValueId{0}};
    graph_.outputs = {ValueId{nodes}};
  }

  // `reader` also reads the output of `node`.
  void skip(int node, int reader) {
    graph_.nodes[static_cast<size_t>(reader)].inputs.push_back(ValueId{node + 1});
  }

  // Preferred over candidates that are offered later for the same node.
  Candidate& offer(int node) {
    Candidate candidate{.preference = static_cast<int>(offers_.candidates.size()),
                        .nodes = {NodeId{node}}};
    for (const ValueId input : graph_.nodes[static_cast<size_t>(node)].inputs) {
      candidate.inputs.push_back({.value = input, .layout = kDefaultLayout});
    }
    candidate.outputs.push_back({.value = ValueId{node + 1}, .layout = kDefaultLayout});
    offers_.candidates.push_back(std::move(candidate));
    return offers_.candidates.back();
  }

  // The choice within the budget.
  std::vector<int> choose(int64_t budget_bytes) const {
    const ChoiceProblem problem = make_choice_problem(graph_, offers_, layouts_, {});
    ChoiceTask task(problem, std::nullopt, {});
    BudgetFitter fitter(graph_, offers_, layouts_, budget_bytes);
    fitter.start(task);
    while (true) {
      const Placement placement = tessera::choose(task).placement;
      const std::optional<Constraints> restricted = fitter.restrict_to_budget(placement, task);
      if (!restricted) {
        EXPECT_TRUE(fitter.fits(placement, task));
        return placement.chosen;
      }
      task = task.with(*restricted);
    }
  }

  // The error message if nothing fits.
  std::string refusal(int64_t budget_bytes) const {
    try {
      choose(budget_bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
      return error.message();
    }
    return "";
  }

 private:
  Graph graph_;
  Offers offers_;
  LayoutTable layouts_{{}};
};

using Chosen = std::vector<int>;

TEST(BudgetFitter, AWorkspaceGivesWayAtThePeakAlone) {
  Chain chain;
  chain.offer(0).workspace_bytes = 64;
  chain.offer(0);
  chain.offer(1).workspace_bytes = 4096;
  chain.offer(1).workspace_bytes = 512;
  chain.offer(1);
  chain.offer(2);
  EXPECT_EQ(chain.choose(0), (Chosen{0, 2, 5}));
  EXPECT_EQ(chain.choose(768 + 4096), (Chosen{0, 2, 5}));
  EXPECT_EQ(chain.choose(768 + 4095).at(0), 0);
  EXPECT_NE(chain.choose(768 + 4095).at(1), 2);
  EXPECT_EQ(chain.choose(768), (Chosen{0, 4, 5}));
}

TEST(BudgetFitter, WhatALibraryKeepsGivesWay) {
  Chain chain;
  chain.offer(0).library_bytes = 10'000;
  chain.offer(0);
  chain.offer(1);
  chain.offer(2).library_bytes = 5000;
  chain.offer(2).library_bytes = 1000;
  EXPECT_EQ(chain.choose(15'768), (Chosen{0, 2, 3}));
  EXPECT_EQ(chain.choose(15'767), (Chosen{1, 2, 3}));
  EXPECT_EQ(chain.choose(5767), (Chosen{1, 2, 4}));
}

TEST(BudgetFitter, WhatCanWriteInPlaceIsChosenWhereThatIsNeeded) {
  Chain chain;
  chain.offer(0);
  chain.offer(1);
  CandidateOutput& output = chain.offer(1).outputs[0];
  output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  output.in_place_input = 0;
  chain.offer(2);
  EXPECT_EQ(chain.choose(768), (Chosen{0, 1, 3}));
  EXPECT_EQ(chain.choose(767), (Chosen{0, 2, 3}));
}

TEST(BudgetFitter, SaysWhatIsLeastWhereNothingFits) {
  Chain chain;
  chain.offer(0).library_bytes = 100;
  chain.offer(1).workspace_bytes = 640;
  chain.offer(1).workspace_bytes = 64;
  chain.offer(2);
  EXPECT_EQ(chain.refusal(768 + 64 + 100), "");
  const std::string refusal = chain.refusal(768 + 64 + 99);
  EXPECT_NE(refusal.find("at most 931 bytes"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("takes 932 bytes, and none is smaller"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("256 bytes for outputs"), std::string::npos) << refusal;
}

TEST(BudgetFitter, DoesNotCallLeastWhatIsNotProven) {
  // While node 2 runs, the output of node 0 is live too. The needs of single nodes do not show
  // that.
  Chain chain(4);
  chain.skip(0, 3);
  for (int node = 0; node < 4; ++node) chain.offer(node);
  EXPECT_EQ(chain.choose(1024), (Chosen{0, 1, 2, 3}));
  EXPECT_NE(chain.refusal(1023).find("takes 1024 bytes, which is not proven"), std::string::npos);
}

TEST(BudgetFitter, FindsWhatFitsThoughGivingWayLeadsElsewhere) {
  // One group, or two candidates that together keep more, although one keeps less than its share.
  Chain chain(2);
  Candidate& group = chain.offer(0);
  group.nodes = {NodeId{0}, NodeId{1}};
  group.outputs[0].value = ValueId{2};
  group.library_bytes = 3000;
  chain.offer(0).library_bytes = 2000;
  chain.offer(1).library_bytes = 2000;
  chain.offer(1).library_bytes = 1000;
  EXPECT_EQ(chain.choose(3256), (Chosen{0}));
  EXPECT_NE(chain.refusal(3255).find("takes 3256 bytes, which is not proven"), std::string::npos);
}

}  // namespace
}  // namespace tessera
