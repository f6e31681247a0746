#include "ops/ml/tree_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/threads/parallel_slots.h"
#include "ops/convert_element.h"

namespace tessera::ops {
namespace {

// So many nodes are visited at once, because each visit waits for the one before: of neighbouring
// rows in one tree, or of one row in several trees, whose nodes are farther from the processor.
constexpr int64_t kWalks = 8;
constexpr int64_t kWalksOfRow = 16;
template <int64_t kCount>
using Walks = std::array<int32_t, static_cast<size_t>(kCount)>;  // the node of each

// One step of each walk; kStride is 1 for neighbouring rows and 0 for one row.
template <int64_t kStride, int64_t kCount, class Key>
Walks<kCount> next_nodes(const TreeNode<Key>* nodes, const Key* keys, const Walks<kCount>& at) {
  Walks<kCount> next;
  for (int64_t walk = 0; walk < kCount; ++walk) {
    const auto index = static_cast<size_t>(walk);
    const TreeNode<Key>& node = nodes[at[index]];
    next[index] = node.child + (keys[node.keys + walk * kStride] > node.threshold ? 1 : 0);
  }
  return next;
}

// Moves all walks to leaves.
template <int64_t kStride, int64_t kCount, class Key>
void descend(const TreeNode<Key>* nodes, const Key* keys, int32_t shallowest, bool is_even,
             Walks<kCount>& at) {
  for (int32_t step = 0; step < shallowest; ++step) {
    at = next_nodes<kStride, kCount>(nodes, keys, at);
  }
  if (is_even) return;
  while (true) {
    const Walks<kCount> next = next_nodes<kStride, kCount>(nodes, keys, at);
    if (next == at) return;
    at = next;
  }
}

// Calls use(row, node) for each leaf that a row of the block reaches, for each row in the order of
// the trees. `rows` of the block are walked; its other keys may be anything.
template <class Key, class Use>
void for_each_leaf(const CompactTrees<Key>& trees, const Key* keys, int64_t rows, const Use& use) {
  const TreeNode<Key>* const nodes = trees.nodes.data();
  for (const TreeRoot& root : trees.roots) {
    for (int64_t first = 0; first < rows; first += kWalks) {
      Walks<kWalks> at;
      at.fill(root.node);
      descend<1, kWalks>(nodes, keys + first, root.shallowest, root.is_even, at);
      const int64_t count = std::min(kWalks, rows - first);
      for (int64_t walk = 0; walk < count; ++walk) use(first + walk, at[static_cast<size_t>(walk)]);
    }
  }
}

// Same, for few rows: several trees at once.
template <class Key, class Use>
void for_each_leaf_of_few(const CompactTrees<Key>& trees, const Key* keys, int64_t rows,
                          const Use& use) {
  const std::span<const TreeRoot> roots = trees.roots;
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t first = 0; first < roots.size(); first += kWalksOfRow) {
      const size_t count = std::min<size_t>(kWalksOfRow, roots.size() - first);
      Walks<kWalksOfRow> at;
      int32_t shallowest = roots[first].shallowest;
      bool is_even = true;
      for (size_t walk = 0; walk < at.size(); ++walk) {
        const TreeRoot& root = roots[first + std::min(walk, count - 1)];
        at[walk] = root.node;
        is_even = is_even && root.is_even && root.shallowest == roots[first].shallowest;
        shallowest = std::min(shallowest, root.shallowest);
      }
      descend<0, kWalksOfRow>(trees.nodes.data(), keys + row, shallowest, is_even, at);
      for (size_t walk = 0; walk < count; ++walk) use(row, at[walk]);
    }
  }
}

// The number that is compared. Integers are compared as float32, as in ONNX Runtime and
// onnx.reference.
template <class Key, class T>
KeyNumber<Key> compared_number(T element) {
  if constexpr (std::is_integral_v<T>) return static_cast<float>(element);
  if constexpr (std::is_same_v<T, Float16>) return static_cast<KeyNumber<Key>>(to_double(element));
  if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, Float16>) {
    return static_cast<KeyNumber<Key>>(element);
  }
}

// Fills the keys of `rows` rows, column by column.
template <class Key, class T>
void fill_keys(const CompactTrees<Key>& trees, const T* input, int64_t features, int64_t rows,
               Key* keys) {
  constexpr int64_t kTile = 16;  // rows whose keys are in one line of the cache
  for (int64_t begin = 0; begin < rows; begin += kTile) {
    const int64_t end = std::min(rows, begin + kTile);
    Key* to = keys;
    for (const TreeColumn& column : trees.columns) {
      const Key of_nan = column.is_nan_lowest ? kLowestKey<Key> : kHighestKey<Key>;
      const T* const from = input + column.feature;
      for (int64_t row = begin; row < end; ++row) {
        to[row] = key_of<Key>(compared_number<Key>(from[row * features]), of_nan);
      }
      to += trees.block_rows;
    }
  }
}

// At most as many rows as a block has. Less if each thread would get none, and one task if there is
// little to do.
template <class Key>
int64_t rows_of_task(const CompactTrees<Key>& trees, int64_t rows, int64_t targets,
                     const ThreadPool& pool) {
  constexpr int64_t kFewWalks = 2048;  // about 20 microseconds
  constexpr int64_t kManyScores = int64_t{1} << 18;
  const int64_t most = std::clamp<int64_t>(kManyScores / targets, 1, trees.block_rows);
  const auto count = std::max<int64_t>(1, std::ssize(trees.roots));
  const int64_t least = std::max<int64_t>(1, kFewWalks / count);
  const int64_t share = (rows + pool.threads() - 1) / pool.threads();
  const int64_t wanted = std::clamp(share, std::min(least, most), most);
  return (wanted + kWalks - 1) / kWalks * kWalks;
}

}  // namespace

template <class Key>
struct TreeModel::Block {
  int64_t rows = 0;
  Key* keys = nullptr;
  double* scores = nullptr;  // row by row
  uint8_t* voted = nullptr;  // the same; null if sums need it not
};

TreeModel::TreeModel(const Node& node, TreeSource source, bool is_wide, int64_t targets,
                     TreeAggregate aggregate, std::vector<double> base)
    : targets_(targets),
      aggregate_(aggregate),
      base_(std::move(base)),
      is_wide_(is_wide || source.has_double_thresholds) {
  const auto add = [&](auto& trees) {
    using Key = decltype(trees.nodes.front().threshold);
    trees = compact_trees<std::remove_cvref_t<Key>>(node, source);
    for (const TreeColumn& column : trees.columns) {
      needed_features_ = std::max<int64_t>(needed_features_, column.feature + 1);
    }
  };
  if (is_wide_) {
    add(wide_);
  } else {
    add(narrow_);
  }
  votes_ = std::move(source.votes);
  first_votes_ = std::move(source.first_votes);
  if (is_wide_) {
    find_single_votes(wide_);
  } else {
    find_single_votes(narrow_);
  }
}

template <class Key>
void TreeModel::find_single_votes(const CompactTrees<Key>& trees) {
  const bool is_sum = aggregate_ == TreeAggregate::Sum || aggregate_ == TreeAggregate::Average;
  if (targets_ != 1 || !is_sum) return;
  single_votes_.assign(trees.nodes.size(), 0);
  for (size_t place = 0; place < trees.nodes.size(); ++place) {
    if (trees.nodes[place].child != static_cast<int32_t>(place)) continue;
    const auto leaf = static_cast<size_t>(trees.leaves[place]);
    for (int32_t index = first_votes_[leaf]; index < first_votes_[leaf + 1]; ++index) {
      single_votes_[place] += votes_[static_cast<size_t>(index)].weight;
    }
  }
}

void TreeModel::vote(int32_t leaf, double* scores, uint8_t* voted) const {
  const auto at = static_cast<size_t>(leaf);
  for (int32_t index = first_votes_[at]; index < first_votes_[at + 1]; ++index) {
    const Vote& vote = votes_[static_cast<size_t>(index)];
    double& score = scores[vote.target];
    if (voted == nullptr) {
      score += vote.weight;
    } else if (voted[vote.target] == 0) {
      voted[vote.target] = 1;
      score = vote.weight;
    } else if (aggregate_ == TreeAggregate::Min) {
      score = std::min(score, vote.weight);
    } else {
      score = std::max(score, vote.weight);
    }
  }
}

template <class Key>
void TreeModel::add_votes(const CompactTrees<Key>& trees, const Block<Key>& block) const {
  const auto walk = [&](const auto& use) {
    if (block.rows < kWalks) return for_each_leaf_of_few(trees, block.keys, block.rows, use);
    for_each_leaf(trees, block.keys, block.rows, use);
  };
  if (!single_votes_.empty()) {
    double* const scores = block.scores;
    const double* const weights = single_votes_.data();
    return walk([=](int64_t row, int32_t node) { scores[row] += weights[node]; });
  }
  walk([&](int64_t row, int32_t node) {
    const int64_t at = row * targets_;
    vote(trees.leaves[static_cast<size_t>(node)], block.scores + at,
         block.voted == nullptr ? nullptr : block.voted + at);
  });
}

template <class Key>
void TreeModel::finish_rows(const CompactTrees<Key>& trees, const Block<Key>& block, int64_t first,
                            Finish finish) const {
  const auto count = static_cast<double>(std::max<int64_t>(1, std::ssize(trees.roots)));
  for (int64_t row = 0; row < block.rows; ++row) {
    const std::span scores(block.scores + row * targets_, static_cast<size_t>(targets_));
    for (size_t target = 0; target < scores.size(); ++target) {
      if (aggregate_ == TreeAggregate::Average) scores[target] /= count;
      if (!base_.empty()) scores[target] += base_[target];
    }
    finish(first + row, scores);
  }
}

template <class Key, class T>
void TreeModel::evaluate_rows(const CompactTrees<Key>& trees, const TensorView& input,
                              ThreadPool& pool, std::pmr::memory_resource& scratch,
                              Finish finish) const {
  const FeatureRows rows = feature_rows(input.dims);
  const bool needs_voted = aggregate_ == TreeAggregate::Min || aggregate_ == TreeAggregate::Max;
  const int64_t grain = rows_of_task(trees, rows.rows, targets_, pool);
  const auto slots = static_cast<size_t>(slot_count(pool, rows.rows, grain));
  const size_t keys = trees.columns.size() * static_cast<size_t>(trees.block_rows);
  const auto scores = static_cast<size_t>(grain * targets_);
  std::pmr::vector<Key> all_keys(slots * keys, &scratch);
  std::pmr::vector<double> all_scores(slots * scores, &scratch);
  std::pmr::vector<uint8_t> all_voted(needs_voted ? slots * scores : 0, &scratch);
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    const auto at = static_cast<size_t>(slot);
    const Block<Key> block = {.rows = end - begin,
                              .keys = all_keys.data() + at * keys,
                              .scores = all_scores.data() + at * scores,
                              .voted = needs_voted ? all_voted.data() + at * scores : nullptr};
    std::fill_n(block.scores, scores, 0.0);
    if (needs_voted) std::fill_n(block.voted, scores, uint8_t{0});
    fill_keys(trees, static_cast<const T*>(input.data) + begin * rows.features, rows.features,
              block.rows, block.keys);
    add_votes(trees, block);
    finish_rows(trees, block, begin, finish);
  };
  parallel_for_in_slots(pool, rows.rows, grain, run);
}

void TreeModel::evaluate(const TensorView& input, ThreadPool& pool,
                         std::pmr::memory_resource& scratch, Finish finish) const {
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      evaluate_rows<int64_t, T>(wide_, input, pool, scratch, finish);
    } else if (is_wide_) {
      evaluate_rows<int64_t, T>(wide_, input, pool, scratch, finish);
    } else {
      evaluate_rows<int32_t, T>(narrow_, input, pool, scratch, finish);
    }
  };
  if (input.type == DataType::Float16) return run(TypeTag<Float16>{});
  visit_feature(input.type, run);
}

}  // namespace tessera::ops
