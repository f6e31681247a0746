#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Flatten, SplitsAtTheAxis) {
  const std::pair<int64_t, std::vector<int64_t>> cases[] = {
      {0, {1, 24}}, {1, {2, 12}}, {3, {24, 1}}, {-1, {6, 4}}, {-3, {1, 24}}};
  for (const auto& [axis, dims] : cases) {
    const auto outputs = run_op("Flatten", 13, attributes_of({{"axis", axis}}),
                                {Tensor(DataType::Float32, {2, 3, 4})});
    EXPECT_EQ(outputs[0].dims(), dims) << axis;
  }
  EXPECT_THAT(
      refusal("Flatten", 13, attributes_of({{"axis", 4}}), {Tensor(DataType::Float32, {2, 3, 4})}),
      HasSubstr("expected an axis"));
}

TEST(Flatten, MultipliesSymbols) {
  const Dim n = Dim::symbol("n");
  const auto outputs = infer_op("Flatten", 13, {}, {typed(DataType::Float32, Shape{n, 3, 4})});
  EXPECT_EQ(*outputs[0].type.shape, (Shape{n, 12}));
  EXPECT_EQ(
      infer_op("Flatten", 13, {}, {typed(DataType::Float32, std::nullopt)})[0].type.shape->size(),
      2U);
}

}  // namespace
}  // namespace tessera::ops
