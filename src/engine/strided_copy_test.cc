#include "engine/strided_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace tessera {
namespace {

// Compares every element.
template <class T>
void expect_copied(const std::vector<int64_t>& dims, const std::vector<int64_t>& from_strides,
                   const std::vector<int64_t>& to_strides, ThreadPool& pool) {
  const auto offset = [&](const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
    return static_cast<size_t>(
        std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
  };
  std::vector<int64_t> last;
  for (const int64_t dim : dims) last.push_back(std::max<int64_t>(dim - 1, 0));
  std::vector<T> from(offset(last, from_strides) + 1);
  std::iota(from.begin(), from.end(), T{1});
  std::vector<T> to(offset(last, to_strides) + 1, T{0});
  std::vector<T> expected = to;
  const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  for (int64_t number = 0; number < count; ++number) {
    std::vector<int64_t> index(dims.size());
    int64_t rest = number;
    for (size_t axis = dims.size(); axis-- > 0;) {
      index[axis] = rest % dims[axis];
      rest /= dims[axis];
    }
    expected[offset(index, to_strides)] = from[offset(index, from_strides)];
  }
  run(plan_copy(dims, sizeof(T), from_strides, to_strides), from.data(), to.data(), pool);
  EXPECT_EQ(to, expected);
}

TEST(StridedCopies, EqualElementByElement) {
  ThreadPool pool(2);
  std::mt19937 random(3);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> dims;
    for (int64_t rank = below(5); rank > 0; --rank)
      dims.push_back(below(9) == 0 ? 0 : 1 + below(9));
    // Strides with random gaps, in a random order of dimensions.
    const auto strides = [&] {
      std::vector<size_t> order(dims.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      std::vector<int64_t> made(dims.size());
      int64_t stride = 1 + below(2);
      for (const size_t axis : order) {
        made[axis] = stride;
        stride *= std::max<int64_t>(dims[axis], 1) + below(2);
      }
      return made;
    };
    expect_copied<float>(dims, strides(), strides(), pool);
    expect_copied<int8_t>(dims, strides(), strides(), pool);
    expect_copied<double>(dims, strides(), strides(), pool);
  }
}

TEST(StridedCopies, GoInFewPieces) {
  const StridedCopy dense = plan_copy({2, 3, 4}, 4, {12, 4, 1}, {12, 4, 1});
  EXPECT_TRUE(dense.loops.empty());
  EXPECT_EQ(dense.piece_bytes, 96);
  const StridedCopy rows = plan_copy({2, 3, 4}, 4, {24, 4, 1}, {12, 4, 1});
  EXPECT_EQ(rows.loops.size(), 1U);
  EXPECT_EQ(rows.piece_bytes, 48);
  const StridedCopy columns = plan_copy({2, 3, 4}, 4, {24, 8, 2}, {12, 4, 1});
  EXPECT_EQ(columns.loops.size(), 1U);
  EXPECT_EQ(columns.piece_bytes, 4);
}

TEST(StridedCopies, OfMuchAreShared) {
  ThreadPool pool(2);
  std::vector<float> from(300'000);
  std::iota(from.begin(), from.end(), 1.0F);
  std::vector<float> to(from.size());
  const auto bytes = static_cast<int64_t>(from.size() * sizeof(float));
  const StridedCopy copy = plan_copy({bytes}, 1, {1}, {1});
  EXPECT_EQ(copy.loops.size(), 1U);
  run(copy, from.data(), to.data(), pool);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace tessera
