#include "import/onnx/graph_builder.h"

#include "base/matchers_test.h"

namespace tessera::onnx_import {
namespace {

TEST(Order, KeepsAnOrderThatIsRight) {
  const Order order = order_nodes({{{"a"}, {"x"}}, {{"b"}, {"x"}}, {{"c"}, {"a", "b"}}});
  EXPECT_THAT(order.nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(order.cycle, IsEmpty());
}

TEST(Order, MovesReadersBehindMakers) {
  const Order order = order_nodes({{{"c"}, {"b", "b"}}, {{"b"}, {"a"}}, {{"a"}, {""}}});
  EXPECT_THAT(order.nodes, ElementsAre(2, 1, 0));
}

TEST(Order, FindsTheCycleAndNothingBesideIt) {
  // 0 precedes the cycle 1 -> 2 -> 3 -> 1, 4 follows it.
  const Order order = order_nodes(
      {{{"a"}, {}}, {{"b"}, {"a", "d"}}, {{"c"}, {"b"}}, {{"d"}, {"c"}}, {{"e"}, {"d"}}});
  EXPECT_THAT(order.cycle, testing::UnorderedElementsAre(1, 2, 3));
}

TEST(Order, NodeThatReadsItselfIsACycle) {
  EXPECT_THAT(order_nodes({{{"a"}, {"a"}}}).cycle, ElementsAre(0));
}

}  // namespace
}  // namespace tessera::onnx_import
