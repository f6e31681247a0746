#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

Attributes reduced_over(std::vector<int64_t> axes, int64_t keepdims) {
  return attributes_of({{"axes", std::move(axes)}, {"keepdims", keepdims}});
}

TEST(QLinearReduceMean, RoundsTheMean) {
  const std::vector<Tensor> inputs = {unsigned_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 9}),
                                      scalar(2), zero_point(1), scalar(1), zero_point(100)};
  // Means 2, 3 and 6, 7.5 minus 1, doubled.
  const Tensor kept = run_microsoft("QLinearReduceMean", reduced_over({1}, 1), inputs)[0];
  EXPECT_EQ(kept.dims()[1], 1);
  EXPECT_THAT(bytes(kept), ElementsAre(102, 104, 110, 113));
  // Without axes, all are reduced: 4.625 - 1, doubled.
  const Tensor all = run_microsoft("QLinearReduceMean", reduced_over({}, 0), inputs)[0];
  EXPECT_EQ(all.dims().size(), 0U);
  EXPECT_THAT(bytes(all), ElementsAre(107));
  EXPECT_THAT(bytes(run_microsoft("QLinearReduceMean", reduced_over({0, -1}, 0), inputs)[0]),
              ElementsAre(105, 110));
}

TEST(ReduceSumInteger, HasTheSignOfItsInput) {
  const Tensor positive = run_microsoft("ReduceSumInteger", reduced_over({0}, 0),
                                        {unsigned_bytes({2, 2}, {255, 1, 255, 2})})[0];
  EXPECT_EQ(positive.type(), DataType::UInt32);
  EXPECT_THAT(positive.as<uint32_t>(), ElementsAre(510, 3));
  const Tensor negative = run_microsoft("ReduceSumInteger", reduced_over({-1}, 1),
                                        {signed_bytes({2, 2}, {-128, 1, -128, -128})})[0];
  EXPECT_EQ(negative.type(), DataType::Int32);
  EXPECT_THAT(negative.as<int32_t>(), ElementsAre(-127, -256));
}

TEST(ReduceSumInteger, SumsNothing) {
  const Tensor none =
      run_microsoft("ReduceSumInteger", reduced_over({0}, 0), {signed_bytes({0, 2}, {})})[0];
  EXPECT_THAT(none.as<int32_t>(), ElementsAre(0, 0));
}

TEST(ReduceSumInteger, RefusesWrongAxes) {
  const auto refusal = [](std::vector<int64_t> axes) {
    return microsoft_refusal("ReduceSumInteger", reduced_over(std::move(axes), 1),
                             {bytewise({2, 3})});
  };
  EXPECT_THAT(refusal({2}), HasSubstr("[-2, 2)"));
  EXPECT_NE(refusal({0, -2}), "");
}

}  // namespace
}  // namespace tessera::ops
