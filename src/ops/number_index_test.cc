#include "ops/number_index.h"

#include <map>
#include <random>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

TEST(NumberIndex, FindsWhatWasAdded) {
  std::mt19937_64 random(7);
  std::map<uint64_t, int64_t> expected;
  NumberIndex index;
  for (int64_t position = 0; position < 5000; ++position) {
    // Small numbers, which repeat, multiples of a large power of two, and any.
    const uint64_t drawn = random();
    const uint64_t number = position % 3 == 0   ? drawn % 1000
                            : position % 3 == 1 ? drawn << 48U
                                                : drawn;
    const int64_t found = expected.try_emplace(number, position).first->second;
    EXPECT_EQ(index.add(number, position), found);
  }
  EXPECT_EQ(index.count(), std::ssize(expected));
  for (const auto& [number, position] : expected) EXPECT_EQ(index.find(number), position);
  for (uint64_t number = 1000; number < 2000; ++number) {
    EXPECT_EQ(index.find(number) == NumberIndex::kNone, !expected.contains(number));
  }
}

}  // namespace
}  // namespace tessera::ops
