#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

Tensor axis(int32_t place) {
  return Tensor::from<int32_t>(DataType::Int32, {}, std::vector{place});
}

TEST(ExpandDims, InsertsAnAxis) {
  const Tensor input = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto dims = [&](int32_t place) {
    return run_contrib("ExpandDims", {}, {input, axis(place)})[0].dims();
  };
  EXPECT_THAT(dims(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(dims(2), ElementsAre(2, 3, 1));
  EXPECT_THAT(dims(-1), ElementsAre(2, 3, 1));
  EXPECT_THAT(dims(-3), ElementsAre(1, 2, 3));
  EXPECT_THAT(contrib_refusal("ExpandDims", {}, {input, axis(3)}), HasSubstr("[-3, 3)"));
  EXPECT_EQ(contrib_type("ExpandDims", {},
                         {typed(DataType::Float32, Shape{2, 3}), typed(DataType::Int32, Shape{})}),
            "float32 ?node.0.0x?node.0.1x?node.0.2");
}

TEST(UnfoldTensor, AppendsTheElementsOfEachSlice) {
  const Tensor input = floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto run = [&](int64_t dim, int64_t size, int64_t step) {
    return run_contrib("UnfoldTensor",
                       attributes_of({{"dim", dim}, {"size", size}, {"step", step}}), {input})[0];
  };
  const Tensor rows = run(0, 3, 1);
  EXPECT_THAT(rows.dims(), ElementsAre(2, 2, 3));
  EXPECT_THAT(values(rows), ElementsAre(0, 2, 4, 1, 3, 5, 2, 4, 6, 3, 5, 7));
  const Tensor columns = run(-1, 1, kLargest);
  EXPECT_THAT(columns.dims(), ElementsAre(4, 1, 1));
  EXPECT_THAT(values(columns), ElementsAre(0, 2, 4, 6));
}

TEST(UnfoldTensor, RefusesWrongSlices) {
  const auto refusal_of = [](int64_t size, int64_t step) {
    return contrib_refusal("UnfoldTensor", attributes_of({{"size", size}, {"step", step}}),
                           {floats({1, 2})});
  };
  EXPECT_THAT(refusal_of(3, 1), HasSubstr("at least 3 elements along axis 0"));
  EXPECT_THAT(refusal_of(0, 1), HasSubstr("at least 1, found 0 and 1"));
  EXPECT_THAT(refusal_of(1, -1), HasSubstr("found 1 and -1"));
}

TEST(TorchEmbedding, SelectsRows) {
  const Tensor table = floats({3, 2}, {0, 1, 2, 3, 4, 5});
  const auto rows = run_contrib("TorchEmbedding", {}, {table, ints({2, 1}, {2, 0})});
  EXPECT_THAT(rows[0].dims(), ElementsAre(2, 1, 2));
  EXPECT_THAT(values(rows[0]), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(contrib_refusal("TorchEmbedding", {}, {table, ints({-1})}),
              HasSubstr("an index in [0, 3), found -1"));
  EXPECT_THAT(contrib_refusal("TorchEmbedding", {}, {floats({1}), ints({0})}),
              HasSubstr("expected rank 2"));
}

}  // namespace
}  // namespace tessera::ops
