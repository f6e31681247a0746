#include "rewrite/pipeline.h"

#include "rewrite/rewrite_test.h"

namespace tessera {
namespace {

class Pipeline : public PassTest {
 protected:
  // A Conv, an Identity and a BatchNormalization with a computed scale; a Dropout whose training
  // mode is a Constant false; shape arithmetic.
  GraphBuilder network() {
    GraphBuilder graph = builder();
    graph.input("x", float_type(Shape{1, 2, 5, 5}))
        .constant("w", noise({4, 2, 3, 3}, 1))
        .constant("negative", noise({4}, 2, -2, -1))
        .constant("four", noise({4}, 3, 0.5F, 1))
        .constant("ratio", floats({}, {0.5F}))
        .constant("zero", ints({1}, {0}))
        .constant("rest", ints({1}, {-1}))
        .node("neg", "Neg", {"negative"}, {"scale"})
        .node("conv", "Conv", {"x", "w"}, {"c"})
        .node("identity", "Identity", {"c"}, {"i"})
        .node("bn", "BatchNormalization", {"i", "scale", "four", "four", "four"}, {"n"})
        .node("mode", "Constant", {}, {"training"}, attributes_of({{"value", bool_scalar(false)}}))
        .node("drop", "Dropout", {"n", "ratio", "training"}, {"d"})
        .node("shape", "Shape", {"d"}, {"s"})
        .node("gather", "Gather", {"s", "zero"}, {"batch"})
        .node("concat", "Concat", {"batch", "rest"}, {"target"}, attributes_of({{"axis", 0}}))
        .node("reshape", "Reshape", {"d", "target"}, {"y"})
        .output("y");
    return graph;
  }

  Rewritten rewritten(const GraphBuilder& graph) {
    return rewrite(infer_types(graph.graph(), registry_, log_), registry_, pool_);
  }
};

TEST_F(Pipeline, PassesHelpOneAnother) {
  GraphBuilder graph = network();
  const Rewritten result = rewritten(graph);
  EXPECT_EQ(explain_illegal(result.graph), "");
  EXPECT_THAT(node_names(result.graph), ElementsAre("conv", "reshape"));
  const std::map<std::string, Tensor> inputs = {{"x", noise({1, 2, 5, 5}, 7)}};
  EXPECT_THAT(outputs_of(result.graph, inputs)[0].as<float>(),
              Pointwise(FloatNear(1e-5F), outputs_of(graph.graph(), inputs)[0].as<float>()));
}

TEST_F(Pipeline, ReportsEachPass) {
  const Rewritten result = rewritten(network());
  std::map<std::string, std::vector<std::string>> changes;
  int64_t nodes = 10;
  for (const PassReport& report : result.reports) {
    EXPECT_TRUE(changes.emplace(report.name, report.changes).second) << report.name;
    EXPECT_EQ(report.nodes_before, nodes);
    nodes = report.nodes_after;
    EXPECT_GE(report.seconds, 0);
  }
  EXPECT_EQ(nodes, 2);
  EXPECT_THAT(changes["fold_batch_norm"],
              ElementsAre("node 'bn' (BatchNormalization) folded into node 'conv' (Conv)"));
}

TEST_F(Pipeline, KeptValuesSurvive) {
  GraphBuilder graph = network();
  const std::vector<std::string> names = {"scale", "c", "i", "n", "training", "d", "s", "target"};
  for (const std::string& name : names) graph.keep(name);
  const Rewritten result = rewritten(graph);
  std::vector<std::string> kept;
  for (const ValueId id : result.graph.kept) kept.push_back(result.graph[id].name);
  EXPECT_EQ(kept, names);
}

TEST_F(Pipeline, ASecondRunFindsNothingMoreToDo) {
  const Rewritten once = rewritten(network());
  const Rewritten twice = rewrite(once.graph, registry_, pool_);
  for (const PassReport& report : twice.reports) EXPECT_THAT(report.changes, IsEmpty());
}

}  // namespace
}  // namespace tessera
