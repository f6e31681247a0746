#include "engine/schedule.h"

#include "base/matchers_test.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// x -> a -> b -> c, each one float tensor of `dims`.
Graph chain_graph(const std::vector<int64_t>& dims) {
  Graph graph;
  const Type type = Type::tensor(DataType::Float32, shape_from(dims));
  ValueId previous = add_value(graph, {.name = "x", .type = type});
  graph.inputs = {previous};
  for (const char* name : {"a", "b", "c"}) {
    const ValueId made = add_value(graph, {.name = name, .type = type});
    Node node;
    node.name = name;
    node.op = "Relu";
    node.inputs = {previous};
    node.outputs = {made};
    graph.nodes.push_back(node);
    previous = made;
  }
  graph.outputs = {previous};
  return graph;
}

TEST(Schedule, ReleasesValuesAfterTheirLastReader) {
  const Schedule schedule = make_schedule(chain_graph({4}));
  ASSERT_EQ(schedule.steps.size(), 3U);
  EXPECT_THAT(schedule.steps[0].released, ElementsAre(ValueId{0}));
  EXPECT_THAT(schedule.steps[1].released, ElementsAre(ValueId{1}));
  EXPECT_THAT(schedule.steps[2].released, ElementsAre(ValueId{2}));
}

TEST(Schedule, KeptValuesLiveToTheEnd) {
  Graph graph = chain_graph({4});
  graph.kept = {{1}};
  const Schedule schedule = make_schedule(graph);
  EXPECT_THAT(schedule.steps[1].released, IsEmpty());
  EXPECT_EQ(schedule.peak_bytes, 3 * 16);
}

TEST(Schedule, PeakCountsWhatIsAliveAtOnce) {
  EXPECT_EQ(make_schedule(chain_graph({4})).peak_bytes, 2 * 16);
}

TEST(Schedule, PeakIsUnknownWhileASizeIs) {
  Graph graph = chain_graph({4});
  graph.values[2].type.shape = Shape{Dim::symbol("n")};
  EXPECT_EQ(make_schedule(graph).peak_bytes, std::nullopt);
}

TEST(Schedule, SumsThatOverflowAreTheModelsFault) {
  EXPECT_THROW(make_schedule(chain_graph({int64_t{1} << 60})), Error);
}

}  // namespace
}  // namespace tessera
