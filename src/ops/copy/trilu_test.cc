#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

TEST(Trilu, KeepsATriangle) {
  const Tensor input = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](int64_t upper, int64_t diagonal) {
    return values(
        run_op("Trilu", 14, attributes_of({{"upper", upper}}), {input, ints({}, {diagonal})})[0]);
  };
  EXPECT_THAT(run(1, 0), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(run(1, 1), ElementsAre(0, 2, 3, 0, 0, 6));
  EXPECT_THAT(run(0, 0), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(run(0, -1), ElementsAre(0, 0, 0, 4, 0, 0));
  EXPECT_THAT(run(1, INT64_MIN), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(run(1, INT64_MAX), testing::Each(0));
  EXPECT_THAT(run(0, INT64_MAX), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Trilu, RefusesVectors) {
  EXPECT_THAT(refusal("Trilu", 14, {}, {floats({1}, {1})}), HasSubstr("rank 2"));
}

TEST(Trilu, OfMicrosoftIsTheSame) {
  const Node node = make_node(all_ops(), "Trilu", 1, attributes_of({{"upper", 0}}), {true, true}, 1,
                              "com.microsoft");
  ThreadPool pool(1);
  const std::vector<Tensor> inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({}, {-1})};
  EXPECT_THAT(values(evaluate(all_ops().of(node), node, inputs, pool)[0]), ElementsAre(0, 0, 3, 0));
}

}  // namespace
}  // namespace tessera::ops
