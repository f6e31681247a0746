#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(Identity, CopiesElementsAndWhatIsKnownOfThem) {
  EXPECT_THAT(integers(run_op("Identity", 13, {}, {ints({2}, {4, 5})})[0]), ElementsAre(4, 5));
  EXPECT_EQ(run_op("Identity", 13, {}, {ints({0, 2}, {})})[0].dims(), (std::vector<int64_t>{0, 2}));
  const Dim n = Dim::symbol("N");
  EXPECT_THAT(*infer_op("Identity", 13, {}, {with_elements({1}, {n})})[0].elements, ElementsAre(n));
}

}  // namespace
}  // namespace tessera::ops
