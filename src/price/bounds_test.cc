#include "price/bounds.h"

#include "price/product_graph_test.h"

namespace tessera::tuning {
namespace {

using Bounds = ProductGraphs;

TEST_F(Bounds, GrowWithWork) {
  const ProcessorSpeed speed{.flops_per_second = 1e9, .bytes_per_second = 1e9};
  const double small = bound_seconds(product("a", 1), registry_, speed, 1, 0);
  // 2 * 2 * 4 * 3 FLOPs take longer than 24 bytes.
  EXPECT_NEAR(small, 48e-9, 1e-12);
  EXPECT_GT(bound_seconds(product("a", 1, 9), registry_, speed, 1, 0), small);
  EXPECT_NEAR(bound_seconds(product("a", 1), registry_, speed, 2, 0), small / 2, 1e-12);
}

}  // namespace
}  // namespace tessera::tuning
