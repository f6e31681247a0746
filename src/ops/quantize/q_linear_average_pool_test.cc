#include "ops/quantize/bytes_test.h"

namespace tessera::ops {
namespace {

std::vector<Tensor> pooled(const Tensor& input) {
  return {input, scalar(0.5F), zero_point(2), scalar(0.25F), zero_point(1)};
}

TEST(QLinearAveragePool, AveragesRealNumbers) {
  const Tensor input = unsigned_bytes({1, 1, 2, 3}, {2, 4, 6, 8, 10, 13});
  const auto window = attributes_of({{"kernel_shape", {2, 2}}});
  // Means 6 and 8.25 minus 2; a step of the result is half of one of the input.
  EXPECT_THAT(bytes(run_microsoft("QLinearAveragePool", window, pooled(input))[0]),
              ElementsAre(9, 13));
}

TEST(QLinearAveragePool, CountsPaddingIfToldTo) {
  const Tensor input = unsigned_bytes({1, 1, 2}, {6, 10});
  auto window = attributes_of({{"kernel_shape", {2}}, {"pads", {1, 1}}});
  EXPECT_THAT(bytes(run_microsoft("QLinearAveragePool", window, pooled(input))[0]),
              ElementsAre(9, 13, 17));
  window.set("count_include_pad", int64_t{1});
  // Padding is the real number 0.
  EXPECT_THAT(bytes(run_microsoft("QLinearAveragePool", window, pooled(input))[0]),
              ElementsAre(5, 13, 9));
}

TEST(QLinearAveragePool, TakesChannelsOnTheLastAxis) {
  // Channels (2, 4, 6) and (3, 5, 9).
  const Tensor input = unsigned_bytes({1, 3, 2}, {2, 3, 4, 5, 6, 9});
  const auto window = attributes_of({{"kernel_shape", {2}}, {"channels_last", 1}});
  const Tensor output = run_microsoft("QLinearAveragePool", window, pooled(input))[0];
  EXPECT_EQ(output.dims()[1], 2);
  EXPECT_THAT(bytes(output), ElementsAre(3, 5, 7, 11));
}

TEST(QLinearGlobalAveragePool, AveragesEachChannel) {
  const Tensor first = unsigned_bytes({1, 2, 2}, {2, 4, 8, 10});
  EXPECT_THAT(bytes(run_microsoft("QLinearGlobalAveragePool", {}, pooled(first))[0]),
              ElementsAre(3, 15));
  const Tensor last = run_microsoft("QLinearGlobalAveragePool",
                                    attributes_of({{"channels_last", 1}}), pooled(first))[0];
  EXPECT_THAT(bytes(last), ElementsAre(7, 11));
  EXPECT_EQ(last.dims()[2], 2);
}

TEST(QLinearAveragePool, RefusesAWindowOfAnotherRank) {
  EXPECT_THAT(microsoft_refusal("QLinearAveragePool", attributes_of({{"kernel_shape", {2, 2}}}),
                                {bytewise({1, 2, 3}), floating({}), bytewise({}), floating({})}),
              HasSubstr("kernel_shape"));
  EXPECT_THAT(
      microsoft_refusal("QLinearGlobalAveragePool", {},
                        {bytewise({3}), floating({}), bytewise({}), floating({}), bytewise({})}),
      HasSubstr("batch and channels"));
}

}  // namespace
}  // namespace tessera::ops
