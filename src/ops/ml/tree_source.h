// An ensemble of trees as the attributes of a node describe it, in one form for all ops and
// versions.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// Numbered as TreeEnsemble does; older ops have a mode of their own for leaves instead of members.
enum class TreeMode : uint8_t {
  LessOrEqual,
  Less,
  GreaterOrEqual,
  Greater,
  Equal,
  NotEqual,
  Member,
  Leaf
};

struct SourceNode {
  TreeMode mode = TreeMode::Leaf;
  bool is_nan_true = false;  // the branch of a NaN, for comparisons that are false for it
  int32_t feature = 0;
  double threshold = 0;
  int32_t if_true = 0;  // an index of TreeSource::nodes, as if_false
  int32_t if_false = 0;
  int32_t first_member = 0;  // of `members`
  int32_t member_count = 0;
};

// The weight of a leaf for a target or a class.
struct Vote {
  int32_t target = 0;
  double weight = 0;
};

struct TreeSource {
  std::vector<SourceNode> nodes;
  std::vector<int32_t> roots;
  std::vector<double> members;
  std::vector<Vote> votes;             // by node
  std::vector<int32_t> first_votes;    // by node, and the number of votes at the end
  bool has_double_thresholds = false;  // of a type wider than float32
};

// The names of the attributes with the votes of leaves: "class_ids" or "target_ids", ...
struct VoteNames {
  const char* prefix;  // "class_" or "target_"
  const char* what;    // "classes" or "targets"
};

// Of TreeEnsembleClassifier and TreeEnsembleRegressor, and of TreeEnsemble. Throw InvalidModel at
// the node if the attributes are not those of trees: lists of other lengths, an index out of range,
// a cycle. `targets` is the number of targets or classes.
TreeSource read_listed_trees(const Node& node, const VoteNames& names, int64_t targets);
TreeSource read_tree_ensemble(const Node& node, int64_t targets);

// The largest index of a feature that a node has; -1 if there is none. Checks nothing.
int64_t largest_feature(const Node& node);

}  // namespace tessera::ops
