#include "ops/ml/tree_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "ops/convert_element.h"
#include "ops/ml/feature_rows.h"
#include "ops/visit_type.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

constexpr std::array<std::pair<std::string_view, TreeMode>, 7> kModeNames = {
    {{"BRANCH_LEQ", TreeMode::LessOrEqual},
     {"BRANCH_LT", TreeMode::Less},
     {"BRANCH_GTE", TreeMode::GreaterOrEqual},
     {"BRANCH_GT", TreeMode::Greater},
     {"BRANCH_EQ", TreeMode::Equal},
     {"BRANCH_NEQ", TreeMode::NotEqual},
     {"LEAF", TreeMode::Leaf}}};

constexpr int64_t kMaxTreeNodes = std::numeric_limits<int32_t>::max() / 4;

[[noreturn]] void fail_at(const Node& node, const std::string& message) {
  throw Error(ErrorKind::InvalidModel, location_of(node), message);
}

std::string in_quotes(std::string_view attribute) { return "'" + std::string(attribute) + "'"; }

// fail_at()s unless `found`, the length of an attribute, is that of attribute `like`.
void check_same_length(const Node& node, std::string_view attribute, int64_t found,
                       std::string_view like, int64_t expected) {
  if (found == expected) return;
  fail_at(node, "attribute " + in_quotes(attribute) + ": expected " + std::to_string(expected) +
                    " elements, as " + in_quotes(like) + " has, found " + std::to_string(found));
}

// fail_at()s unless element `index` of an attribute is in [0, limit).
void check_range(const Node& node, std::string_view attribute, size_t index, int64_t found,
                 int64_t limit, std::string_view what) {
  if (found >= 0 && found < limit) return;
  fail_at(node, "attribute " + in_quotes(attribute) + ", element " + std::to_string(index) +
                    ": expected an index of " + std::string(what) + " in [0, " +
                    std::to_string(limit) + "), found " + std::to_string(found));
}

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  visit_floating(tensor.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::transform(tensor.as<T>(), numbers.begin(),
                           [](T number) { return static_cast<double>(to_double(number)); });
  });
  return numbers;
}

const Tensor* float_tensor(const Node& node, const std::string& attribute) {
  const Tensor* const tensor = node.attributes.find_tensor(attribute);
  if (tensor == nullptr) return nullptr;
  if (!is_floating(tensor->type())) {
    fail_at(node, "attribute " + in_quotes(attribute) +
                      ": expected floating-point numbers, found " +
                      std::string(name(tensor->type())));
  }
  return tensor;
}

// A list of numbers, or since version 3 a tensor instead, with the suffix "_as_tensor".
std::vector<double> tree_numbers(const Node& node, const std::string& attribute) {
  const std::span<const float> list = float_list(node, attribute);
  const Tensor* const tensor = float_tensor(node, attribute + "_as_tensor");
  if (tensor == nullptr) return {list.begin(), list.end()};
  if (!list.empty()) {
    fail_at(node, "expected one of the attributes " + in_quotes(attribute) + " and " +
                      in_quotes(attribute + "_as_tensor") + ", found both");
  }
  return doubles_of(*tensor);
}

bool exceeds_float(std::span<const double> numbers) {
  return std::ranges::any_of(numbers, [](double number) {
    return !std::isnan(number) && static_cast<double>(static_cast<float>(number)) != number;
  });
}

void check_features(const Node& node, std::span<const int64_t> features) {
  for (size_t index = 0; index < features.size(); ++index) {
    check_range(node, "nodes_featureids", index, features[index], kMaxTreeNodes, "a feature");
  }
}

// fail_at()s if a node is below itself. Nodes may be below several others.
void check_acyclic(const Node& node, const TreeSource& trees) {
  enum class State : uint8_t { Unseen, Open, Done };
  std::vector<State> states(trees.nodes.size(), State::Unseen);
  std::vector<std::pair<int32_t, int>> path;  // a node, and how many of its children were entered
  for (const int32_t root : trees.roots) {
    if (states[static_cast<size_t>(root)] == State::Unseen) path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [index, entered] = path.back();
      const SourceNode& source = trees.nodes[static_cast<size_t>(index)];
      State& state = states[static_cast<size_t>(index)];
      if (entered == 2 || source.mode == TreeMode::Leaf) {
        state = State::Done;
        path.pop_back();
        continue;
      }
      state = State::Open;
      const int32_t child = entered++ == 0 ? source.if_true : source.if_false;
      if (states[static_cast<size_t>(child)] == State::Open) {
        fail_at(node, "expected trees, found a cycle: element " + std::to_string(child) +
                          " of the nodes is below itself");
      }
      if (states[static_cast<size_t>(child)] == State::Unseen) path.emplace_back(child, 0);
    }
  }
}

// --- Lists with an entry for each node, leaves too -----------------------------------------------

struct NodeName {
  int64_t tree = 0;
  int64_t id = 0;
  int32_t index = 0;  // of the lists
};

bool is_before(const NodeName& left, const NodeName& right) {
  return std::pair(left.tree, left.id) < std::pair(right.tree, right.id);
}

class NodeNames {
 public:
  explicit NodeNames(const Node& node) : node_(node) {
    const std::span<const int64_t> trees = int_list(node, "nodes_treeids");
    const std::span<const int64_t> ids = int_list(node, "nodes_nodeids");
    for (size_t index = 0; index < trees.size(); ++index) {
      names_.push_back({trees[index], ids[index], static_cast<int32_t>(index)});
    }
    // Exporters list them in order.
    if (!std::ranges::is_sorted(names_, is_before)) std::ranges::sort(names_, is_before);
    for (size_t index = 1; index < names_.size(); ++index) {
      if (is_before(names_[index - 1], names_[index])) continue;
      fail_at(node, "expected different nodes, found node " + std::to_string(names_[index].id) +
                        " of tree " + std::to_string(names_[index].tree) + " twice");
    }
  }

  int32_t find(std::string_view attribute, int64_t tree, int64_t id) const {
    const auto found = std::ranges::lower_bound(names_, NodeName{tree, id}, is_before);
    if (found != names_.end() && found->tree == tree && found->id == id) return found->index;
    fail_at(node_, "attribute " + in_quotes(attribute) + ": expected a node of tree " +
                       std::to_string(tree) + ", found " + std::to_string(id));
  }

 private:
  const Node& node_;
  std::vector<NodeName> names_;
};

TreeMode mode_named(const Node& node, std::string_view word) {
  for (const auto& [name, mode] : kModeNames) {
    if (name == word) return mode;
  }
  fail_at(node,
          "attribute 'nodes_modes': expected BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, "
          "BRANCH_EQ, BRANCH_NEQ or LEAF, found '" +
              std::string(word) + "'");
}

// The first node that is listed of each tree, in the order of the lists.
std::vector<int32_t> listed_roots(std::span<const int64_t> trees) {
  std::vector<std::pair<int64_t, int32_t>> firsts;
  for (size_t index = 0; index < trees.size(); ++index) {
    if (index == 0 || trees[index] != trees[index - 1]) {
      firsts.emplace_back(trees[index], static_cast<int32_t>(index));
    }
  }
  std::ranges::sort(firsts);
  const auto repeated = std::ranges::unique(firsts, {}, &std::pair<int64_t, int32_t>::first);
  firsts.erase(repeated.begin(), repeated.end());
  std::vector<int32_t> roots;
  for (const auto& [tree, index] : firsts) roots.push_back(index);
  std::ranges::sort(roots);
  return roots;
}

void check_listed_lengths(const Node& node, const std::vector<double>& values) {
  constexpr std::string_view kLike = "nodes_treeids";
  const auto count = std::ssize(int_list(node, kLike));
  if (count > kMaxTreeNodes) {
    fail_at(node, "expected at most " + std::to_string(kMaxTreeNodes) + " nodes of trees, found " +
                      std::to_string(count));
  }
  for (const std::string_view list :
       {"nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids"}) {
    check_same_length(node, list, std::ssize(int_list(node, list)), kLike, count);
  }
  check_same_length(node, "nodes_values", std::ssize(values), kLike, count);
  const auto* const modes = node.attributes.find_strings("nodes_modes");
  check_same_length(node, "nodes_modes", modes == nullptr ? 0 : std::ssize(*modes), kLike, count);
  const auto tracks = std::ssize(int_list(node, "nodes_missing_value_tracks_true"));
  if (tracks > 0) {
    check_same_length(node, "nodes_missing_value_tracks_true", tracks, kLike, count);
  }
}

void read_listed_nodes(const Node& node, const NodeNames& names, TreeSource& trees) {
  const std::vector<double> values = tree_numbers(node, "nodes_values");
  trees.has_double_thresholds = exceeds_float(values);
  const std::span<const int64_t> tree_ids = int_list(node, "nodes_treeids");
  const std::span<const int64_t> features = int_list(node, "nodes_featureids");
  const std::span<const int64_t> if_true = int_list(node, "nodes_truenodeids");
  const std::span<const int64_t> if_false = int_list(node, "nodes_falsenodeids");
  const std::span<const int64_t> tracks = int_list(node, "nodes_missing_value_tracks_true");
  trees.nodes.resize(tree_ids.size());
  for (size_t index = 0; index < tree_ids.size(); ++index) {
    SourceNode& source = trees.nodes[index];
    source.mode = mode_named(node, (*node.attributes.find_strings("nodes_modes"))[index]);
    if (source.mode == TreeMode::Leaf) continue;
    check_range(node, "nodes_featureids", index, features[index], kMaxTreeNodes, "a feature");
    source.feature = static_cast<int32_t>(features[index]);
    source.threshold = values[index];
    source.is_nan_true = !tracks.empty() && tracks[index] != 0;
    source.if_true = names.find("nodes_truenodeids", tree_ids[index], if_true[index]);
    source.if_false = names.find("nodes_falsenodeids", tree_ids[index], if_false[index]);
  }
}

void read_listed_votes(const Node& node, const VoteNames& vote_names, int64_t targets,
                       const NodeNames& names, TreeSource& trees) {
  const std::string prefix = vote_names.prefix;
  const std::string like = prefix + "ids";
  const std::span<const int64_t> ids = int_list(node, like);
  const std::span<const int64_t> tree_ids = int_list(node, prefix + "treeids");
  const std::span<const int64_t> node_ids = int_list(node, prefix + "nodeids");
  const std::vector<double> weights = tree_numbers(node, prefix + "weights");
  check_same_length(node, prefix + "treeids", std::ssize(tree_ids), like, std::ssize(ids));
  check_same_length(node, prefix + "nodeids", std::ssize(node_ids), like, std::ssize(ids));
  check_same_length(node, prefix + "weights", std::ssize(weights), like, std::ssize(ids));
  std::vector<int32_t> places;
  trees.first_votes.assign(trees.nodes.size() + 1, 0);
  for (size_t index = 0; index < ids.size(); ++index) {
    check_range(node, like, index, ids[index], targets, vote_names.what);
    places.push_back(names.find(prefix + "nodeids", tree_ids[index], node_ids[index]));
    ++trees.first_votes[static_cast<size_t>(places.back()) + 1];
  }
  for (size_t index = 1; index < trees.first_votes.size(); ++index) {
    trees.first_votes[index] += trees.first_votes[index - 1];
  }
  trees.votes.resize(ids.size());
  std::vector<int32_t> next = trees.first_votes;
  for (size_t index = 0; index < ids.size(); ++index) {
    const int32_t at = next[static_cast<size_t>(places[index])]++;
    trees.votes[static_cast<size_t>(at)] = {static_cast<int32_t>(ids[index]), weights[index]};
  }
}

// --- Lists of inner nodes and of leaves ----------------------------------------------------------

const Tensor& needed_tensor(const Node& node, const std::string& attribute) {
  const Tensor* const tensor = float_tensor(node, attribute);
  if (tensor == nullptr)
    fail_at(node, "expected the attribute " + in_quotes(attribute) + ", found none");
  return *tensor;
}

std::span<const uint8_t> modes_of(const Node& node) {
  const Tensor* const modes = node.attributes.find_tensor("nodes_modes");
  if (modes == nullptr || modes->type() != DataType::UInt8) {
    fail_at(node, "attribute 'nodes_modes': expected elements of uint8, found " +
                      std::string(modes == nullptr ? "none" : name(modes->type())));
  }
  return modes->as<uint8_t>();
}

// Lists of members end with a NaN each.
void read_members(const Node& node, TreeSource& trees) {
  if (const Tensor* const members = float_tensor(node, "membership_values")) {
    trees.members = doubles_of(*members);
  }
  size_t next = 0;
  int64_t lists = 0;
  for (SourceNode& source : trees.nodes) {
    if (source.mode != TreeMode::Member) continue;
    const auto begin = trees.members.begin() + static_cast<ptrdiff_t>(next);
    const auto end =
        std::find_if(begin, trees.members.end(), [](double m) { return std::isnan(m); });
    if (end == trees.members.end()) {
      fail_at(node,
              "attribute 'membership_values': expected a list that ends with NaN for each "
              "node of mode BRANCH_MEMBER, found " +
                  std::to_string(lists) + " lists");
    }
    source.first_member = static_cast<int32_t>(next);
    source.member_count = static_cast<int32_t>(end - begin);
    next += static_cast<size_t>(end - begin) + 1;
    ++lists;
  }
  if (next != trees.members.size()) {
    fail_at(node, "attribute 'membership_values': expected " + std::to_string(lists) +
                      " lists, one for each node of mode BRANCH_MEMBER, found more");
  }
}

int32_t child_index(const Node& node, const std::string& side, size_t index, int64_t inner,
                    int64_t leaves) {
  const std::string attribute = "nodes_" + side + "nodeids";
  const int64_t child = int_list(node, attribute)[index];
  const bool is_leaf = int_list(node, "nodes_" + side + "leafs")[index] != 0;
  check_range(node, attribute, index, child, is_leaf ? leaves : inner,
              is_leaf ? "a leaf" : "a node");
  return static_cast<int32_t>(is_leaf ? inner + child : child);
}

void read_inner_nodes(const Node& node, int64_t leaves, TreeSource& trees) {
  constexpr std::string_view kLike = "nodes_featureids";
  const std::span<const int64_t> features = int_list(node, kLike);
  const auto count = std::ssize(features);
  for (const std::string_view list :
       {"nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"}) {
    check_same_length(node, list, std::ssize(int_list(node, list)), kLike, count);
  }
  const std::span<const uint8_t> modes = modes_of(node);
  const std::vector<double> splits = doubles_of(needed_tensor(node, "nodes_splits"));
  const std::span<const int64_t> tracks = int_list(node, "nodes_missing_value_tracks_true");
  check_same_length(node, "nodes_modes", std::ssize(modes), kLike, count);
  check_same_length(node, "nodes_splits", std::ssize(splits), kLike, count);
  if (!tracks.empty()) {
    check_same_length(node, "nodes_missing_value_tracks_true", std::ssize(tracks), kLike, count);
  }
  check_features(node, features);
  for (size_t index = 0; index < features.size(); ++index) {
    check_range(node, "nodes_modes", index, modes[index], static_cast<int64_t>(TreeMode::Leaf),
                "a mode");
    SourceNode& source = trees.nodes[index];
    source.mode = static_cast<TreeMode>(modes[index]);
    source.feature = static_cast<int32_t>(features[index]);
    source.threshold = splits[index];
    source.is_nan_true = !tracks.empty() && tracks[index] != 0;
    source.if_true = child_index(node, "true", index, count, leaves);
    source.if_false = child_index(node, "false", index, count, leaves);
  }
  trees.has_double_thresholds = exceeds_float(splits);
}

}  // namespace

TreeSource read_listed_trees(const Node& node, const VoteNames& names, int64_t targets) {
  check_listed_lengths(node, tree_numbers(node, "nodes_values"));
  TreeSource trees;
  const NodeNames nodes(node);
  read_listed_nodes(node, nodes, trees);
  read_listed_votes(node, names, targets, nodes, trees);
  trees.roots = listed_roots(int_list(node, "nodes_treeids"));
  check_acyclic(node, trees);
  return trees;
}

TreeSource read_tree_ensemble(const Node& node, int64_t targets) {
  const std::vector<double> weights = doubles_of(needed_tensor(node, "leaf_weights"));
  const std::span<const int64_t> ids = int_list(node, "leaf_targetids");
  check_same_length(node, "leaf_targetids", std::ssize(ids), "leaf_weights", std::ssize(weights));
  const auto inner = std::ssize(int_list(node, "nodes_featureids"));
  const auto leaves = std::ssize(weights);
  if (inner > kMaxTreeNodes || leaves > kMaxTreeNodes) {
    fail_at(node, "expected at most " + std::to_string(kMaxTreeNodes) +
                      " nodes and leaves, found " + std::to_string(inner) + " and " +
                      std::to_string(leaves));
  }
  TreeSource trees;
  trees.nodes.resize(static_cast<size_t>(inner + leaves));
  read_inner_nodes(node, leaves, trees);
  read_members(node, trees);
  trees.has_double_thresholds = trees.has_double_thresholds || exceeds_float(trees.members);
  trees.first_votes.assign(static_cast<size_t>(inner), 0);
  for (size_t leaf = 0; leaf < weights.size(); ++leaf) {
    check_range(node, "leaf_targetids", leaf, ids[leaf], targets, "a target");
    trees.first_votes.push_back(static_cast<int32_t>(leaf));
    trees.votes.push_back({static_cast<int32_t>(ids[leaf]), weights[leaf]});
  }
  trees.first_votes.push_back(static_cast<int32_t>(weights.size()));
  const std::span<const int64_t> roots = int_list(node, "tree_roots");
  for (size_t index = 0; index < roots.size(); ++index) {
    check_range(node, "tree_roots", index, roots[index], inner, "a node");
    trees.roots.push_back(static_cast<int32_t>(roots[index]));
  }
  check_acyclic(node, trees);
  return trees;
}

int64_t largest_feature(const Node& node) {
  const std::span<const int64_t> features = int_list(node, "nodes_featureids");
  const auto* const modes = node.attributes.find_strings("nodes_modes");
  int64_t largest = -1;
  for (size_t index = 0; index < features.size(); ++index) {
    const bool is_leaf = modes != nullptr && index < modes->size() && (*modes)[index] == "LEAF";
    if (!is_leaf) largest = std::max(largest, features[index]);
  }
  return largest;
}

}  // namespace tessera::ops
