#include "ops/contrib/contrib_test.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

std::vector<int32_t> path_of(const Tensor& costs) {
  const Node node = make_node(all_ops(), "DynamicTimeWarping", 1, {}, {true}, 1, kMicrosoftDomain);
  std::vector<Tensor> outputs(1);
  run_on_values(all_ops().of(node), {node, std::span(&costs, 1), outputs});
  EXPECT_EQ(outputs[0].dims()[0], 2);
  const auto elements = outputs[0].as<int32_t>();
  return {elements.begin(), elements.end()};
}

TEST(DynamicTimeWarping, FindsTheLowestCost) {
  // Along the first column and the last row.
  EXPECT_THAT(path_of(floats({3, 3}, {1, 9, 9, 1, 9, 9, 1, 1, 1})),
              ElementsAre(0, 1, 2, 2, 0, 0, 1, 2));
  EXPECT_THAT(path_of(floats({1, 2, 2}, {0, 1, 1, 0})), ElementsAre(0, 1, 0, 1));
}

// Of neighbours that are equally good, the left one is taken.
TEST(DynamicTimeWarping, GoesLeftIfAllIsEqual) {
  EXPECT_THAT(path_of(floats({2, 2}, {0, 0, 0, 0})), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_THAT(path_of(floats({1, 3}, {1, 1, 1})), ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT(path_of(floats({3, 1}, {1, 1, 1})), ElementsAre(0, 1, 2, 0, 0, 0));
}

TEST(DynamicTimeWarping, RefusesWhatIsNoMatrix) {
  const auto type_of = [](Shape shape) {
    return contrib_type("DynamicTimeWarping", {}, {typed(DataType::Float32, std::move(shape))});
  };
  EXPECT_EQ(type_of({3, 4}), "int32 2x?node.0.1");
  for (const Shape& shape : {Shape{3}, Shape{2, 3, 4}, Shape{0, 3}}) {
    EXPECT_THAT(error_of([&] { type_of(shape); }), HasSubstr("expected a matrix with elements"));
  }
}

}  // namespace
}  // namespace tessera::ops
