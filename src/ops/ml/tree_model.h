// An ensemble of trees that is ready to be evaluated.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "base/threads/function_ref.h"
#include "ops/ml/compact_trees.h"
#include "ops/ml/feature_rows.h"
#include "ops/ml/tree_source.h"
#include "ops/op.h"

namespace tessera::ops {

// Numbered as TreeEnsemble does.
enum class TreeAggregate : uint8_t { Average, Sum, Min, Max };

class TreeModel {
 public:
  // `is_wide`: the input is of float64. `base` is added to the scores of all targets; it is empty
  // or has one number for each. Throws InvalidModel at `node`.
  TreeModel(const Node& node, TreeSource source, bool is_wide, int64_t targets,
            TreeAggregate aggregate, std::vector<double> base);

  int64_t targets() const { return targets_; }
  // The number of features that a row must have.
  int64_t needed_features() const { return needed_features_; }

  // Calls finish(row, scores) for each row of `input`, on several threads. `scores` has one number
  // for each target and may be changed. A target for which no leaf of a row votes has the score 0.
  using Finish = FunctionRef<void(int64_t row, std::span<double> scores)>;
  void evaluate(const TensorView& input, ThreadPool& pool, std::pmr::memory_resource& scratch,
                Finish finish) const;

 private:
  template <class Key>
  struct Block;

  template <class Key, class T>
  void evaluate_rows(const CompactTrees<Key>& trees, const TensorView& input, ThreadPool& pool,
                     std::pmr::memory_resource& scratch, Finish finish) const;
  template <class Key>
  void add_votes(const CompactTrees<Key>& trees, const Block<Key>& block) const;
  template <class Key>
  void finish_rows(const CompactTrees<Key>& trees, const Block<Key>& block, int64_t first,
                   Finish finish) const;
  void vote(int32_t leaf, double* scores, uint8_t* voted) const;
  template <class Key>
  void find_single_votes(const CompactTrees<Key>& trees);

  int64_t targets_;
  TreeAggregate aggregate_;
  std::vector<double> base_;
  std::vector<Vote> votes_;
  std::vector<int32_t> first_votes_;
  bool is_wide_;
  CompactTrees<int32_t> narrow_;
  CompactTrees<int64_t> wide_;
  int64_t needed_features_ = 0;
  // If there is one target, for which each leaf votes once, and scores are sums: by node.
  std::vector<double> single_votes_;
};

}  // namespace tessera::ops
