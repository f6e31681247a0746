#include "ops/op_test.h"

namespace tessera::ops {
namespace {

// With exponent 1 every result is a plain quotient. For an even size, the extra neighbour comes
// after the element.
TEST(Lrn, DividesByTheSquaresOfTheNeighbours) {
  const Tensor output =
      run_op("LRN", 13, attributes_of({{"size", 2}, {"alpha", 2.0F}, {"beta", 1.0F}}),
             {floats({1, 3, 1}, {1, 2, 3})})[0];
  EXPECT_THAT(values(output), ElementsAre(testing::FloatEq(1.0F / 6), testing::FloatEq(2.0F / 14),
                                          testing::FloatEq(3.0F / 10)));
}

}  // namespace
}  // namespace tessera::ops
