#include "ops/ml/compact_trees.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "tessera/error.h"

namespace tessera::ops {
namespace {

// A test as a function of the key: `first` for the smallest keys, and the opposite beyond each of
// `flips`, which are ascending.
template <class Key>
struct KeyTest {
  bool first = false;
  std::vector<Key> flips;
  int32_t column = 0;
  int32_t if_true = 0;
  int32_t if_false = 0;
};

// The keys that equal one of `numbers`. Two neighbouring keys are one interval.
template <class Key>
std::vector<Key> flips_of_members(std::vector<Key> keys) {
  std::ranges::sort(keys);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  std::vector<Key> flips;
  for (const Key key : keys) {
    if (!flips.empty() && flips.back() == key - 1) {
      flips.back() = key;
    } else {
      flips.push_back(key - 1);
      flips.push_back(key);
    }
  }
  return flips;
}

template <class Key>
class TreeCompactor {
 public:
  TreeCompactor(const Node& node, const TreeSource& source)
      : node_(node), source_(source), expanded_(source.nodes.size(), kUnset) {}

  CompactTrees<Key> run() {
    for (const int32_t root : source_.roots) add_tree(root);
    if (trees_.columns.empty()) trees_.columns.emplace_back();
    set_block_rows();
    return std::move(trees_);
  }

 private:
  static constexpr int32_t kUnset = -1;
  static constexpr size_t kMaxNodes = size_t{1} << 30;
  static constexpr size_t kMaxColumns = size_t{1} << 27;  // times 8 rows is less than 2^31

  [[noreturn]] void fail_too_many(size_t limit, const char* what) const {
    throw Error(ErrorKind::InvalidModel, location_of(node_),
                "expected trees of at most " + std::to_string(limit) + " " + what + ", found more");
  }

  // A place to fill: with the tests [begin, end) of a source's node, or with the node itself.
  struct Pending {
    int32_t place = 0;
    int32_t source = 0;
    int32_t test = kUnset;  // of tests_
    int32_t begin = 0;
    int32_t end = 0;
    int32_t depth = 0;
  };

  using Numbers = KeyNumber<Key>;

  void add_tree(int32_t root) {
    TreeRoot& tree = trees_.roots.emplace_back();
    tree.node = add_places(1);
    shallowest_ = std::numeric_limits<int32_t>::max();
    deepest_ = 0;
    is_shared_ = false;
    tests_.clear();
    pending_.assign(1, {.place = tree.node, .source = root});
    for (size_t next = 0; next < pending_.size(); ++next) fill(Pending(pending_[next]));
    tree.shallowest = shallowest_;
    tree.is_even = shallowest_ == deepest_ && !is_shared_;
  }

  int32_t add_places(size_t count) {
    const size_t first = trees_.nodes.size();
    if (first + count > kMaxNodes) fail_too_many(kMaxNodes, "tests");
    trees_.nodes.resize(first + count);
    trees_.leaves.resize(first + count, 0);
    return static_cast<int32_t>(first);
  }

  void fill(const Pending& pending) {
    if (pending.test != kUnset) return fill_test(pending);
    // Tests that all rows pass, or none, need no node.
    int32_t at = pending.source;
    while (source_.nodes[static_cast<size_t>(at)].mode != TreeMode::Leaf) {
      const int32_t known = expanded_[static_cast<size_t>(at)];
      if (known != kUnset) {
        trees_.nodes[static_cast<size_t>(pending.place)] = trees_.nodes[static_cast<size_t>(known)];
        is_shared_ = true;
        shallowest_ = std::min(shallowest_, pending.depth);
        return;
      }
      KeyTest<Key> test = test_of(source_.nodes[static_cast<size_t>(at)]);
      if (!test.flips.empty()) {
        expanded_[static_cast<size_t>(at)] = pending.place;
        const auto flips = static_cast<int32_t>(test.flips.size());
        tests_.push_back(std::move(test));
        Pending whole = pending;
        whole.test = static_cast<int32_t>(tests_.size()) - 1;
        whole.end = flips;
        return fill_test(whole);
      }
      at = test.first ? test.if_true : test.if_false;
    }
    fill_leaf(pending, at);
  }

  void fill_leaf(const Pending& pending, int32_t source) {
    const auto place = static_cast<size_t>(pending.place);
    trees_.nodes[place] = {.threshold = kHighestKey<Key>, .keys = 0, .child = pending.place};
    trees_.leaves[place] = source;
    shallowest_ = std::min(shallowest_, pending.depth);
    deepest_ = std::max(deepest_, pending.depth);
  }

  // Halves the tests of one node of the source.
  void fill_test(const Pending& pending) {
    const KeyTest<Key>& test = tests_[static_cast<size_t>(pending.test)];
    const int32_t middle = pending.begin + (pending.end - pending.begin) / 2;
    const Key threshold = test.flips[static_cast<size_t>(middle)];
    const int32_t column = test.column;
    const Pending left = side(pending, test, pending.begin, middle);
    const Pending right = side(pending, test, middle + 1, pending.end);
    const int32_t children = add_places(2);
    trees_.nodes[static_cast<size_t>(pending.place)] = {
        .threshold = threshold, .keys = column, .child = children};
    for (int32_t index = 0; index < 2; ++index) {
      pending_.push_back(index == 0 ? left : right);
      pending_.back().place = children + index;
      pending_.back().depth = pending.depth + 1;
    }
  }

  Pending side(const Pending& pending, const KeyTest<Key>& test, int32_t begin, int32_t end) {
    if (begin < end) {
      return {.source = pending.source, .test = pending.test, .begin = begin, .end = end};
    }
    // Between flips begin - 1 and begin.
    const bool is_true = test.first != (begin % 2 == 1);
    return {.source = is_true ? test.if_true : test.if_false};
  }

  Key threshold_of(double number) const { return key_of<Key>(static_cast<Numbers>(number)); }

  KeyTest<Key> test_of(const SourceNode& source) {
    KeyTest<Key> test = {.if_true = source.if_true, .if_false = source.if_false};
    const bool is_negated = source.mode == TreeMode::NotEqual;
    if (source.mode == TreeMode::Member) {
      std::vector<Key> keys;
      for (int32_t index = 0; index < source.member_count; ++index) {
        keys.push_back(
            threshold_of(source_.members[static_cast<size_t>(source.first_member + index)]));
      }
      test.flips = flips_of_members(std::move(keys));
    } else if (std::isnan(source.threshold)) {
      test.first = is_negated;
    } else {
      set_flips(test, source.mode, threshold_of(source.threshold));
    }
    place_nan(test, source.feature, source.is_nan_true || is_negated);
    return test;
  }

  static void set_flips(KeyTest<Key>& test, TreeMode mode, Key key) {
    switch (mode) {
      case TreeMode::LessOrEqual:
      case TreeMode::Greater:
        test.first = mode == TreeMode::LessOrEqual;
        test.flips = {key};
        return;
      case TreeMode::Less:
      case TreeMode::GreaterOrEqual:
        test.first = mode == TreeMode::Less;
        test.flips = {key - 1};
        return;
      default:
        test.first = mode == TreeMode::NotEqual;
        test.flips = {key - 1, key};
        return;
    }
  }

  // Chooses the key of a NaN, so that it leads to its branch, and the column with these keys.
  void place_nan(KeyTest<Key>& test, int32_t feature, bool is_true) {
    const bool last = test.first != (test.flips.size() % 2 == 1);
    const bool is_lowest = last != is_true;
    if (is_lowest && test.first != is_true) {
      test.flips.insert(test.flips.begin(), kLowestKey<Key>);
      test.first = is_true;
    }
    if (!test.flips.empty()) test.column = column_of(feature, is_lowest);
  }

  int32_t column_of(int32_t feature, bool is_nan_lowest) {
    const auto [found, is_new] = columns_.try_emplace(std::pair(feature, is_nan_lowest),
                                                      static_cast<int32_t>(trees_.columns.size()));
    if (!is_new) return found->second;
    if (trees_.columns.size() == kMaxColumns) fail_too_many(kMaxColumns, "features");
    trees_.columns.push_back({feature, is_nan_lowest});
    return found->second;
  }

  // The keys of a block and a tree should stay in the first cache.
  void set_block_rows() {
    constexpr size_t kBlockBytes = size_t{1} << 15;
    int64_t rows = 256;
    while (rows > 8 &&
           static_cast<size_t>(rows) * trees_.columns.size() * sizeof(Key) > kBlockBytes) {
      rows /= 2;
    }
    trees_.block_rows = rows;
    for (TreeNode<Key>& node : trees_.nodes) node.keys *= static_cast<int32_t>(rows);
  }

  const Node& node_;
  const TreeSource& source_;
  CompactTrees<Key> trees_;
  std::map<std::pair<int32_t, bool>, int32_t> columns_;
  std::vector<int32_t> expanded_;  // by node of the source: where it is
  std::vector<KeyTest<Key>> tests_;
  std::vector<Pending> pending_;  // of one tree
  int32_t shallowest_ = 0;
  int32_t deepest_ = 0;
  bool is_shared_ = false;
};

}  // namespace

template <class Key>
CompactTrees<Key> compact_trees(const Node& node, const TreeSource& source) {
  return TreeCompactor<Key>(node, source).run();
}

template CompactTrees<int32_t> compact_trees(const Node& node, const TreeSource& source);
template CompactTrees<int64_t> compact_trees(const Node& node, const TreeSource& source);

}  // namespace tessera::ops
