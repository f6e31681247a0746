#include <limits>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

const Tensor kShapeInput = floats({2, 3, 1}, {0, 0, 0, 0, 0, 0});

struct CutCase {
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  std::vector<int64_t> expected;
};

const CutCase kCutCases[] = {
    {{}, {}, {2, 3, 1}},
    {-1, {}, {1}},
    {{}, -1, {2, 3}},
    {1, 2, {3}},
    {2, 1, {}},
    {-100, 100, {2, 3, 1}},
    {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), {2, 3, 1}},
    {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), {}},
};

TEST(Shape, IsCutByStartAndEnd) {
  for (const CutCase& test : kCutCases) {
    Attributes attributes;
    if (test.start) attributes.set("start", *test.start);
    if (test.end) attributes.set("end", *test.end);
    EXPECT_EQ(integers(run_op("Shape", 15, attributes, {kShapeInput})[0]), test.expected);
  }
  EXPECT_THAT(integers(run_op("Shape", 6, {}, {kShapeInput})[0]), ElementsAre(2, 3, 1));
}

TEST(Shape, ElementsAreTheDimensions) {
  const Dim n = Dim::symbol("N");
  const auto outputs = infer_op("Shape", 13, {}, {typed(DataType::Float32, Shape{n, 3})});
  EXPECT_THAT(*outputs[0].elements, ElementsAre(n, Dim(3)));
  const auto unknown = infer_op("Shape", 13, {}, {typed(DataType::Float32, std::nullopt)});
  EXPECT_EQ(unknown[0].type.shape->size(), 1);
  EXPECT_EQ(unknown[0].elements, std::nullopt);
}

TEST(Size, CountsElements) {
  const Tensor output = run_op("Size", 13, {}, {kShapeInput})[0];
  EXPECT_EQ(output.rank(), 0);
  EXPECT_THAT(integers(output), ElementsAre(6));
  const Dim n = Dim::symbol("N");
  EXPECT_THAT(*infer_op("Size", 13, {}, {typed(DataType::Float32, Shape{n, 3})})[0].elements,
              ElementsAre(multiply(n, 3)));
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(infer_op("Size", 13, {}, {typed(DataType::Float32, Shape{large, large})})[0].elements,
            std::nullopt);
}

}  // namespace
}  // namespace tessera::ops
