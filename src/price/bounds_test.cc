#include "price/bounds.h"

#include "price/product_graph_test.h"
#include "tessera/backend_abi.h"

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

TEST_F(Bounds, AssumeTheSpeedupOfTheTuning) {
  const ProcessorSpeed speed{.flops_per_second = 1e9, .bytes_per_second = 1e9};
  const auto bound = [&](const PriceTuning& tuning) {
    return bound_seconds(product("a", 1), registry_, speed, 1, TESSERA_PRECISION_BFLOAT16, tuning);
  };
  // 48 FLOPs at 16 times the speed take less than 24 bytes.
  EXPECT_NEAR(bound({}), 24e-9, 1e-12);
  EXPECT_NEAR(bound({.bfloat16_speedup = 1}), 48e-9, 1e-12);
}

}  // namespace
}  // namespace tessera::tuning
