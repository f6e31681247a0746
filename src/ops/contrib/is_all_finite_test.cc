#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

TEST(IsAllFinite, LooksAtAllInputs) {
  const auto run = [](const Attributes& given, std::vector<float> last) {
    return bytes(run_contrib("IsAllFinite", given, {floats({1, 2}), floats(last)})[0])[0] != 0;
  };
  const Attributes inf_only = attributes_of({{"isinf_only", 1}});
  const Attributes nan_only = attributes_of({{"isnan_only", 1}});
  EXPECT_TRUE(run({}, {3}));
  EXPECT_FALSE(run({}, {3, kNan}));
  EXPECT_FALSE(run({}, {-kInfinity}));
  EXPECT_TRUE(run(inf_only, {kNan}));
  EXPECT_FALSE(run(inf_only, {kInfinity}));
  EXPECT_TRUE(run(nan_only, {kInfinity}));
  EXPECT_FALSE(run(nan_only, {kNan}));
}

TEST(IsAllFinite, RefusesBothKindsAtOnce) {
  EXPECT_THAT(contrib_refusal("IsAllFinite", attributes_of({{"isinf_only", 1}, {"isnan_only", 1}}),
                              {floats({1})}),
              HasSubstr("at most one"));
}

}  // namespace
}  // namespace tessera::ops
