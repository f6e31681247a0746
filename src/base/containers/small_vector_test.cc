#include "base/containers/small_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>

namespace tessera {
namespace {

TEST(SmallVector, NeedsNoMemoryWhileItIsShort) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{8}}) {
    SmallVector<int64_t> list(count, std::pmr::null_memory_resource());
    ASSERT_EQ(list.values().size(), count);
    for (const int64_t value : list.values()) EXPECT_EQ(value, 0);
  }
}

TEST(SmallVector, TakesMemoryWhereItIsLong) {
  EXPECT_THROW(SmallVector<int64_t>(9, std::pmr::null_memory_resource()), std::bad_alloc);
  SmallVector<int64_t> list(9);
  ASSERT_EQ(list.values().size(), 9U);
  for (int64_t& value : list.values()) EXPECT_EQ(value++, 0);
  for (const int64_t value : list.values()) EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace tessera
