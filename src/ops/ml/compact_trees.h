// Trees as evaluation reads them: nodes of 12 or 16 bytes, whose two children are neighbours, and
// one kind of test. A feature is compared as an integer, its key, that is ordered as the numbers
// are. So each test of each mode becomes "is the key greater than a threshold": an equality or a
// set of members is a few of them, and a NaN is the largest or the smallest key, whichever leads to
// its branch.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/ml/tree_source.h"

namespace tessera::ops {

// Key is int32_t for float, int64_t for double.
template <class Key>
using KeyNumber = std::conditional_t<sizeof(Key) == 4, float, double>;

template <class Key>
inline constexpr Key kLowestKey = std::numeric_limits<Key>::min();
template <class Key>
inline constexpr Key kHighestKey = std::numeric_limits<Key>::max();

// The key of a number that is no NaN: more than kLowestKey and less than kHighestKey. Equal numbers
// have equal keys, also zeros of both signs.
template <class Key>
Key key_of(KeyNumber<Key> number) {
  const auto bits = std::bit_cast<Key>(number);
  if (bits == kLowestKey<Key>) return 0;  // -0
  return bits ^ ((bits >> (8 * sizeof(Key) - 1)) & kHighestKey<Key>);
}

// The key of a number, or of a NaN.
template <class Key>
Key key_of(KeyNumber<Key> number, Key of_nan) {
  return number != number ? of_nan : key_of<Key>(number);
}

// A leaf is its own child, and no key exceeds its threshold.
template <class Key>
struct TreeNode {
  Key threshold = 0;
  int32_t keys = 0;   // where the keys of its column are in a block: the column * block_rows
  int32_t child = 0;  // the next node is `child`, or `child` + 1 if the key exceeds the threshold
};

// A feature that trees test.
struct TreeColumn {
  int32_t feature = 0;
  bool is_nan_lowest = false;
};

struct TreeRoot {
  int32_t node = 0;
  int32_t shallowest = 0;  // the smallest number of steps to a leaf
  bool is_even = true;     // no leaf needs more
};

template <class Key>
struct CompactTrees {
  std::vector<TreeColumn> columns;  // at least one
  int64_t block_rows = 0;           // rows of a block: a power of two from 8 on
  std::vector<TreeNode<Key>> nodes;
  std::vector<TreeRoot> roots;
  std::vector<int32_t> leaves;  // by node: of a leaf, its index in the source
};

// Throws InvalidModel at `node` if the trees have too many nodes.
template <class Key>
CompactTrees<Key> compact_trees(const Node& node, const TreeSource& source);

extern template CompactTrees<int32_t> compact_trees(const Node& node, const TreeSource& source);
extern template CompactTrees<int64_t> compact_trees(const Node& node, const TreeSource& source);

}  // namespace tessera::ops
