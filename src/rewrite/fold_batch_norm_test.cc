#include "rewrite/passes.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

constexpr int64_t kChannels = 4;

class FoldBatchNorm : public PassTest {
 protected:
  // x --conv--> c --bn--> y, with different numbers everywhere.
  GraphBuilder conv_and_norm(bool has_bias, int opset = 17, Attributes norm_attributes = {}) {
    GraphBuilder graph = builder(opset);
    graph.input("x", float_type(Shape{1, 2, 5, 5}))
        .constant("w", noise({kChannels, 2, 3, 3}, 1))
        .constant("conv_bias", noise({kChannels}, 2))
        .constant("scale", noise({kChannels}, 3))
        .constant("shift", noise({kChannels}, 4))
        .constant("mean", noise({kChannels}, 5))
        .constant("variance", noise({kChannels}, 6, 0.1F, 2))
        .node("conv", "Conv", has_bias ? inputs_with_bias_ : inputs_, {"c"})
        .node("bn", "BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"y"},
              std::move(norm_attributes));
    return graph;
  }

  void expect_same_outputs(const Graph& graph, const Graph& folded) {
    const std::map<std::string, Tensor> inputs = {{"x", noise({1, 2, 5, 5}, 7)}};
    const std::vector<Tensor> expected = outputs_of(graph, inputs);
    const std::vector<Tensor> found = outputs_of(folded, inputs);
    ASSERT_EQ(expected[0].dims(), found[0].dims());
    EXPECT_THAT(found[0].as<float>(), Pointwise(FloatNear(1e-5F), expected[0].as<float>()));
  }

  const std::vector<std::string> inputs_ = {"x", "w"};
  const std::vector<std::string> inputs_with_bias_ = {"x", "w", "conv_bias"};
};

TEST_F(FoldBatchNorm, GivesTheSameNumbersWithAndWithoutBias) {
  for (const int opset : {7, 9, 14, 17}) {
    for (const bool has_bias : {false, true}) {
      GraphBuilder graph =
          conv_and_norm(has_bias, opset, attributes_of({{"epsilon", 0.25F}})).output("y");
      const Graph folded = run(fold_batch_norm, graph);
      ASSERT_THAT(node_names(folded), ElementsAre("conv"));
      EXPECT_EQ(folded.nodes[0].inference_only, "fold_batch_norm");
      EXPECT_EQ(folded[folded.outputs[0]].name, "y");
      EXPECT_THAT(changes_,
                  ElementsAre("node 'bn' (BatchNormalization) folded into node 'conv' (Conv)"));
      expect_same_outputs(graph.graph(), folded);
    }
  }
}

TEST_F(FoldBatchNorm, TheConvTakesOverNotesThatItDoesNotHave) {
  Graph graph = infer_types(conv_and_norm(true).output("y").graph(), registry_, log_);
  graph.nodes[0].metadata = {{"layer", "conv"}};
  graph.nodes[1].metadata = {{"block", "3"}, {"layer", "norm"}};
  EXPECT_THAT(run(fold_batch_norm, graph).nodes[0].metadata,
              ElementsAre(std::pair("block", "3"), std::pair("layer", "conv")));
}

TEST_F(FoldBatchNorm, OneAfterTheOtherFoldsTwice) {
  GraphBuilder graph = conv_and_norm(true);
  graph.node("bn2", "BatchNormalization", {"y", "shift", "scale", "mean", "variance"}, {"z"})
      .output("z");
  const Graph folded = run(fold_batch_norm, graph);
  EXPECT_THAT(node_names(folded), ElementsAre("conv"));
  expect_same_outputs(graph.graph(), folded);
}

TEST_F(FoldBatchNorm, SharedWeightsAndTakenNamesAreLeftAlone) {
  GraphBuilder graph = conv_and_norm(false);
  graph.constant("w_folded", floats({}, {1}))
      .node("other", "Conv", {"x", "w"}, {"z"})
      .output("y")
      .output("z")
      .output("w_folded");
  const Graph folded = run(fold_batch_norm, graph);
  EXPECT_EQ(folded[folded.nodes[0].inputs[1]].name, "w_folded_2");
  EXPECT_EQ(folded[folded.nodes[0].inputs[2]].name, "w_folded_bias");
  EXPECT_EQ(folded[folded.nodes[1].inputs[1]].name, "w");
  EXPECT_THAT(value_of(folded, "w").constant.as<float>(),
              testing::ElementsAreArray(noise({kChannels, 2, 3, 3}, 1).as<float>()));
}

TEST_F(FoldBatchNorm, AResultThatOthersWantIsNotFolded) {
  GraphBuilder read_twice = conv_and_norm(true).node("relu", "Relu", {"c"}, {"z"}).output("y");
  GraphBuilder is_output = conv_and_norm(true).output("c").output("y");
  GraphBuilder is_kept = conv_and_norm(true).output("y").keep("c");
  for (const GraphBuilder& graph : {read_twice, is_output, is_kept}) {
    EXPECT_EQ(run(fold_batch_norm, graph).nodes.size(), graph.graph().nodes.size());
    EXPECT_THAT(changes_, IsEmpty());
  }
}

TEST_F(FoldBatchNorm, TrainingIsNotFolded) {
  GraphBuilder graph = conv_and_norm(true, 17, attributes_of({{"training_mode", 1}}));
  EXPECT_EQ(run(fold_batch_norm, graph.output("y").graph()).nodes.size(), 2U);
  GraphBuilder old = conv_and_norm(true, 6);
  EXPECT_EQ(run(fold_batch_norm, old.output("y").graph()).nodes.size(), 2U);
}

TEST_F(FoldBatchNorm, StatisticsThatAreFedAreNotFolded) {
  GraphBuilder graph = builder();
  graph.input("x", float_type(Shape{1, 2, 5, 5}))
      .input("mean", float_type(Shape{kChannels}))
      .constant("w", noise({kChannels, 2, 3, 3}, 1))
      .constant("other", noise({kChannels}, 2, 0.1F, 1))
      .node("conv", "Conv", {"x", "w"}, {"c"})
      .node("bn", "BatchNormalization", {"c", "other", "other", "mean", "other"}, {"y"})
      .output("y");
  EXPECT_EQ(run(fold_batch_norm, graph).nodes.size(), 2U);
}

TEST_F(FoldBatchNorm, NumbersThatWouldNotBeFiniteAreNotFolded) {
  GraphBuilder graph = conv_and_norm(true, 17, attributes_of({{"epsilon", 0.0F}}));
  graph.constant("variance", floats({kChannels}, {1, 1, 0, 1})).output("y");
  EXPECT_EQ(run(fold_batch_norm, graph).nodes.size(), 2U);
}

}  // namespace
}  // namespace tessera
