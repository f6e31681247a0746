#include "place/view_copies.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Sharing = PlacementCandidate::Sharing;

// a -> Split -> b, c -> two readers; then Concat(d, e) -> f. A copy of value v costs 10 to the
// power of v.
class ViewCopiesOf : public testing::Test {
 protected:
  enum Value { A, B, C, D, E, F, G };

  ViewCopiesOf() {
    problem_.value_count = 7;
    problem_.nodes = {{{}, {A}}, {{A}, {B, C}}, {{B}, {D}}, {{C}, {E}}, {{D, E}, {F}}, {{F}, {G}}};
    problem_.conversion_seconds = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000};
    problem_.conversion_hops = {{0, 1}, {1, 0}};
    problem_.layout_count = 2;
    problem_.is_constant.assign(7, false);
    problem_.candidates = {kernel(0, {}, {{.value = A, .bytes = 160}}),
                           kernel(1, {{.value = A}}, {}),
                           kernel(2, {{.value = B}}, {{.value = D, .bytes = 64}}),
                           kernel(3, {{.value = C}}, {{.value = E, .bytes = 96}}),
                           kernel(4, {}, {{.value = F}}),
                           kernel(5, {{.value = F}}, {{.value = G}})};
    PlacementCandidate& split = problem_.candidates[1];
    split.sharing = Sharing::View;
    split.outputs = {{.value = B, .bytes = 64}, {.value = C, .offset_bytes = 64, .bytes = 96}};
    PlacementCandidate& concat = problem_.candidates[4];
    concat.sharing = Sharing::Joint;
    concat.inputs = {{.value = D, .bytes = 64}, {.value = E, .offset_bytes = 64, .bytes = 96}};
    concat.outputs = {{.value = F, .bytes = 160}};
  }

  static PlacementCandidate kernel(int node, std::vector<PlacementPort> inputs,
                                   std::vector<PlacementPort> outputs) {
    PlacementCandidate made;
    made.nodes = {node};
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    return made;
  }

  // Copy seconds of each candidate, taken in order.
  std::vector<double> seconds() const {
    ViewCopies copies(problem_);
    std::vector<double> all_seconds;
    for (const PlacementCandidate& candidate : problem_.candidates) {
      all_seconds.push_back(copies.seconds(candidate));
      copies.take(candidate);
    }
    return all_seconds;
  }

  PlacementProblem problem_;
};

TEST_F(ViewCopiesOf, AlignedDensePartsAreNone) { EXPECT_EQ(seconds(), std::vector<double>(6, 0)); }

TEST_F(ViewCopiesOf, OddPlacesAreForReadersThatMindThem) {
  problem_.candidates[1].outputs[1].offset_bytes = 60;
  EXPECT_EQ(seconds(), (std::vector<double>{0, 100, 0, 100, 0, 0}));
  problem_.candidates[3].inputs[0].alignment_bytes = 4;
  EXPECT_EQ(seconds(), std::vector<double>(6, 0));
}

TEST_F(ViewCopiesOf, StridesAreForReadersThatTakeNone) {
  problem_.candidates[1].outputs[0].has_strides = true;
  EXPECT_EQ(seconds(), (std::vector<double>{0, 10, 10, 0, 0, 0}));
  problem_.candidates[2].inputs[0].accepts_strides = true;
  EXPECT_EQ(seconds(), std::vector<double>(6, 0));
}

TEST_F(ViewCopiesOf, AReaderThatWantsAnotherLayoutConverts) {
  problem_.candidates[1].outputs[1].offset_bytes = 60;
  problem_.candidates[3].inputs[0].layout = 1;
  EXPECT_EQ(seconds(), (std::vector<double>{0, 100, 0, 100, 0, 0}));
}

TEST_F(ViewCopiesOf, PartsThatCannotBeWrittenInPlaceAreOfThoseParts) {
  problem_.candidates[4].inputs[1].offset_bytes = 60;
  EXPECT_EQ(seconds(), (std::vector<double>{0, 0, 0, 0, 10'000, 0}));
  problem_.candidates[4].inputs[0].has_strides = true;
  EXPECT_EQ(seconds(), (std::vector<double>{0, 0, 0, 0, 11'000, 0}));
}

TEST_F(ViewCopiesOf, PartsOfInputsConstantsAndOtherValuesAreOfThose) {
  // B is part of A, and F does not contain all of A.
  problem_.candidates[4].inputs[0].value = B;
  EXPECT_EQ(seconds()[4], 10);
  // F contains all of A: B and C are arranged as in A.
  problem_.candidates[4].inputs[1].value = C;
  EXPECT_EQ(seconds()[4], 0);
  // No node produces A: it is an input.
  problem_.candidates[0].outputs.clear();
  EXPECT_EQ(seconds()[4], 110);
}

TEST_F(ViewCopiesOf, AViewIsChosenUnlessItsCopiesCostMore) {
  const std::vector<std::string> names(6, "node");
  PlacementCandidate real = problem_.candidates[1];
  real.sharing = Sharing::None;
  real.seconds = 50;
  real.outputs = {{.value = B, .bytes = 64}, {.value = C, .bytes = 96}};
  problem_.candidates.push_back(real);
  EXPECT_EQ(choose_in_order(problem_, names).chosen[1], 1);
  problem_.candidates[1].outputs[1].offset_bytes = 60;
  EXPECT_EQ(choose_in_order(problem_, names).chosen[1], 6);
  problem_.candidates[6].seconds = 200;
  EXPECT_EQ(choose_in_order(problem_, names).chosen[1], 1);
}

}  // namespace
}  // namespace tessera
