#include "codegen/groups/fuse_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tessera::codegen {
namespace {

constexpr size_t kMaxNodes = 1'536;
// After this many nodes, a search for a path gives up as if it had found one.
constexpr int kMaxVisits = 512;
// The number of first nodes that other backends may fuse with a matmul or a convolution.
constexpr size_t kMaxFirstNodes = 3;
// The maximum size of a group whose values are repeated along rows of another group.
constexpr size_t kMaxRepeatedNodes = 16;
constexpr int kNoGroup = -1;

struct GrowingGroup {
  std::vector<int32_t> nodes;  // ascending
  IterationSpace space;
  int64_t part_elements = 0;
};

// Grows groups node by node, in the order of the graph.
class GroupFinder {
 public:
  explicit GroupFinder(const FusionGraph& graph)
      : graph_(graph),
        group_of_(graph.graph.nodes.size(), kNoGroup),
        levels_(graph.graph.values.size(), Level::Point),
        visited_(graph.graph.nodes.size(), 0),
        visited_groups_() {}

  // The nodes of each group, ascending.
  std::vector<std::vector<int32_t>> find() {
    for (size_t node = 0; node < graph_.graph.nodes.size(); ++node) {
      add({static_cast<int32_t>(node)});
    }
    std::vector<std::vector<int32_t>> found;
    for (GrowingGroup& group : groups_) {
      if (!group.nodes.empty()) found.push_back(std::move(group.nodes));
    }
    return found;
  }

 private:
  const Node& node_at(NodeId id) const { return graph_.graph[id]; }

  NodeId producer_of(ValueId value) const { return graph_.producer(value); }

  int group_of(NodeId node) const {
    return node.is_none() ? kNoGroup : group_of_[static_cast<size_t>(node.index)];
  }

  // Whether a group computes a value: output 0, or any output of a Slice.
  bool is_computed(ValueId value) const {
    const NodeId producer = producer_of(value);
    if (group_of(producer) == kNoGroup) return false;
    return graph_.role(producer).kind == FusionKind::Slice || node_at(producer).outputs[0] == value;
  }

  void add(NodeId id) {
    if (graph_.role(id).kind == FusionKind::None) return;
    // The groups that make its inputs; the latest first, because it is the nearest.
    std::set<int, std::greater<>> makers;
    for (const ValueId input : node_at(id).inputs) {
      if (is_computed(input)) makers.insert(group_of(producer_of(input)));
    }
    if (makers.size() > 1 && join(id, {makers.begin(), makers.end()})) return;
    for (const int maker : makers) {
      if (join(id, {maker})) return;
    }
    begin_group(id);
  }

  void begin_group(NodeId id) {
    const FusionKind kind = graph_.role(id).kind;
    const std::vector<ValueId>& inputs = node_at(id).inputs;
    const bool is_one_value = std::ranges::all_of(inputs, [&](ValueId each) {  //
      return each == inputs[0];
    });
    // A Concat of different tensors only moves elements.
    if (kind == FusionKind::View || (kind == FusionKind::Concat && !is_one_value)) return;
    const Partition whole = {element_count(space_dims(graph_, id)), 0};
    const std::optional<Partition> demanded = demanded_partition(graph_, id, false);
    std::optional<GroupSpace> space = first_space(graph_, id, demanded.value_or(whole));
    if (!space || !add_node(graph_, id, *space)) return;
    group_of_[static_cast<size_t>(id.index)] = static_cast<int>(groups_.size());
    groups_.push_back({{id.index}, space->space, space->part_elements});
    set_levels(id, *space);
  }

  void set_levels(NodeId id, const GroupSpace& space) {
    for (const ValueId output : node_at(id).outputs) {
      const auto level = space.levels.find(output);
      if (level == space.levels.end()) continue;
      levels_[static_cast<size_t>(output.index)] = level->second;
    }
  }

  // One space for the computations of the members and of the node; nullopt if there is none.
  std::optional<GroupSpace> joint_space(NodeId id, const std::vector<int>& members) const {
    const bool is_input_inside = is_member(group_of(producer_of(node_at(id).inputs[0])), members);
    std::optional<Partition> partition = demanded_partition(graph_, id, is_input_inside);
    std::vector<GroupSpace> spaces;
    for (const int member : members) {
      const GrowingGroup& group = groups_[static_cast<size_t>(member)];
      spaces.push_back({group.space, group.part_elements, {}});
      const std::optional<RepeatedRows> rows = repeated_rows(id, member);
      if (rows && !spaces.back().stretch(*rows)) return std::nullopt;
      const Partition own = spaces.back().partition();
      partition = partition ? common_partition(*partition, own) : own;
      if (!partition) return std::nullopt;
    }
    for (GroupSpace& space : spaces) {
      if (!space.cut(*partition)) return std::nullopt;
      if (&space == spaces.data()) continue;
      const bool is_reduced = spaces[0].space.has_reduction() || space.space.has_reduction();
      if (is_reduced && partition->part_elements != 0) return std::nullopt;
      if (!spaces[0].space.add_space(space.space)) return std::nullopt;
    }
    for (const ValueId input : node_at(id).inputs) {
      if (!is_member(group_of(producer_of(input)), members) || !is_computed(input)) continue;
      const bool is_row = repeated_rows(id, group_of(producer_of(input))).has_value();
      spaces[0].levels[input] = is_row ? Level::Row : levels_[static_cast<size_t>(input.index)];
    }
    return std::move(spaces[0]);
  }

  // How the node repeats the values of a group that reduces nothing, if nobody else reads them.
  std::optional<RepeatedRows> repeated_rows(NodeId id, int group) const {
    const GrowingGroup& member = groups_[static_cast<size_t>(group)];
    if (member.space.has_reduction() || member.nodes.size() > kMaxRepeatedNodes) {
      return std::nullopt;
    }
    std::optional<RepeatedRows> rows;
    const std::vector<ValueId>& inputs = node_at(id).inputs;
    for (size_t index = 0; index < inputs.size() && !rows; ++index) {
      if (is_computed(inputs[index]) && group_of(producer_of(inputs[index])) == group) {
        rows = demanded_rows(graph_, id, index);
      }
    }
    return rows && are_read_by(id, member.nodes) ? rows : std::nullopt;
  }

  // Whether only the nodes themselves and `id` read the results of `nodes`.
  bool are_read_by(NodeId id, const std::vector<int32_t>& nodes) const {
    std::map<ValueId, int> reads;
    for (const int32_t node : nodes) {
      for (const ValueId input : node_at({node}).inputs) ++reads[input];
    }
    for (const ValueId input : node_at(id).inputs) ++reads[input];
    return std::ranges::all_of(nodes, [&](int32_t node) {
      return std::ranges::all_of(node_at({node}).outputs, [&](ValueId output) {
        return output.is_none() || reads[output] == graph_.use_counts[output_index(output)];
      });
    });
  }

  static size_t output_index(ValueId value) { return static_cast<size_t>(value.index); }

  // Joins `members` and the node into one group if that is possible; else changes nothing.
  bool join(NodeId id, const std::vector<int>& members) {
    size_t nodes = 1;
    for (const int member : members) nodes += groups_[static_cast<size_t>(member)].nodes.size();
    if (nodes > kMaxNodes) return false;
    std::optional<GroupSpace> space = joint_space(id, members);
    if (!space || !add_node(graph_, id, *space) || !is_convex(id, members)) return false;
    for (const int member : members) {
      if (repeated_rows(id, member)) make_rows(member);
    }
    GrowingGroup& first = groups_[static_cast<size_t>(members[0])];
    for (size_t index = 1; index < members.size(); ++index) absorb(members[0], members[index]);
    first.nodes.push_back(id.index);
    first.space = space->space;
    first.part_elements = space->part_elements;
    group_of_[static_cast<size_t>(id.index)] = members[0];
    set_levels(id, *space);
    return true;
  }

  void make_rows(int group) {
    for (const int32_t node : groups_[static_cast<size_t>(group)].nodes) {
      for (const ValueId output : node_at({node}).outputs) {
        if (!output.is_none()) levels_[output_index(output)] = Level::Row;
      }
    }
  }

  void absorb(int into, int from) {
    std::vector<int32_t>& nodes = groups_[static_cast<size_t>(into)].nodes;
    std::vector<int32_t>& others = groups_[static_cast<size_t>(from)].nodes;
    for (const int32_t node : others) group_of_[static_cast<size_t>(node)] = into;
    const auto middle = static_cast<std::ptrdiff_t>(nodes.size());
    nodes.insert(nodes.end(), others.begin(), others.end());
    std::inplace_merge(nodes.begin(), nodes.begin() + middle, nodes.end());
    others.clear();
  }

  // --- Convexity -------------------------------------------------------------------------------

  // Whether no path from a member leads through a node outside into the node, or into another
  // member.
  bool is_convex(NodeId id, const std::vector<int>& members) {
    int32_t first = id.index;
    for (const int member : members) {
      first = std::min(first, groups_[static_cast<size_t>(member)].nodes.front());
    }
    ++search_;
    visits_ = 0;
    std::vector<int32_t> pending;
    push_outside_producers(id, members, first, pending);
    // One member alone was convex before.
    if (members.size() > 1) {
      for (const int member : members) {
        const std::vector<int32_t>& nodes = groups_[static_cast<size_t>(member)].nodes;
        // Paths between members end behind the begin of the later one.
        const int32_t begin = later_begin(member, members);
        const auto after = std::upper_bound(nodes.begin(), nodes.end(), begin);
        for (auto node = after; node != nodes.end(); ++node) {
          push_outside_producers({*node}, members, first, pending);
        }
      }
    }
    return !reaches(pending, members, first);
  }

  // The smallest first node of the members other than `member`.
  int32_t later_begin(int member, const std::vector<int>& members) const {
    int32_t begin = INT32_MAX;
    for (const int other : members) {
      if (other != member) {
        begin = std::min(begin, groups_[static_cast<size_t>(other)].nodes.front());
      }
    }
    return begin;
  }

  // The last node that runs together with `node`. No node before the first member reads a member.
  int32_t last_of_its_group(NodeId node) const {
    const int group = group_of(node);
    return group == kNoGroup ? node.index : groups_[static_cast<size_t>(group)].nodes.back();
  }

  bool is_member(int group, const std::vector<int>& members) const {
    return std::find(members.begin(), members.end(), group) != members.end();
  }

  void push_outside_producers(NodeId id, const std::vector<int>& members, int32_t first,
                              std::vector<int32_t>& pending) const {
    const auto push = [&](ValueId value) {
      const NodeId producer = producer_of(value);
      if (producer.is_none() || is_member(group_of(producer), members)) return;
      if (last_of_its_group(producer) >= first) pending.push_back(producer.index);
    };
    for (const ValueId input : node_at(id).inputs) push(input);
    for (const Body& body : node_at(id).bodies) {
      for (const Capture& capture : body.graph.captures) push(capture.outer);
    }
  }

  // Whether a member makes an input of one of these nodes, or of the nodes before them.
  bool reaches(std::vector<int32_t>& pending, const std::vector<int>& members, int32_t first) {
    const auto visit_inputs = [&](NodeId node) {
      const auto is_made_inside = [&](ValueId value) {
        const NodeId producer = producer_of(value);
        return !producer.is_none() && is_member(group_of(producer), members);
      };
      bool is_inside = false;
      for (const ValueId input : node_at(node).inputs) is_inside |= is_made_inside(input);
      for (const Body& body : node_at(node).bodies) {
        for (const Capture& capture : body.graph.captures) {
          is_inside |= is_made_inside(capture.outer);
        }
      }
      if (!is_inside) push_outside_producers(node, members, first, pending);
      return is_inside;
    };
    while (!pending.empty()) {
      const NodeId node = {pending.back()};
      pending.pop_back();
      if (visited_[static_cast<size_t>(node.index)] == search_) continue;
      visited_[static_cast<size_t>(node.index)] = search_;
      if (++visits_ > kMaxVisits) return true;
      if (node.index > first && visit_inputs(node)) return true;
      // A group runs as a whole, so the inputs of each of its nodes come before all of them.
      const int group = group_of(node);
      if (group == kNoGroup || !visited_groups_.insert({search_, group}).second) continue;
      for (const int32_t other : groups_[static_cast<size_t>(group)].nodes) {
        if (other < first) continue;
        pending.push_back(other);
      }
    }
    return false;
  }

  const FusionGraph& graph_;
  std::vector<int> group_of_;  // by node
  std::vector<Level> levels_;  // by value; of values that groups make
  std::vector<GrowingGroup> groups_;
  int search_ = 0;
  int visits_ = 0;
  std::vector<int> visited_;                      // by node: the last search that saw it
  std::set<std::pair<int, int>> visited_groups_;  // search and group
};

// --- Offered groups ------------------------------------------------------------------------------

class GroupList {
 public:
  explicit GroupList(const FusionGraph& graph) : graph_(graph) {}

  // Adds the group of these nodes; if it is too large for one kernel, the group of each half.
  void add(std::vector<int32_t> nodes) {
    trim_views(nodes);
    if (!is_worth_a_kernel(nodes)) return;
    std::vector<NodeId> ids;
    for (const int32_t node : nodes) ids.push_back({node});
    FusedNodes fused = fuse_nodes(graph_, ids);
    if (fused.group) {
      groups_.push_back(*std::move(fused.group));
    } else if (nodes.size() >= 2) {
      // A beginning and an end of a convex group are convex.
      const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() / 2);
      add({nodes.begin(), middle});
      add({middle, nodes.end()});
    }
  }

  // Adds the group of all nodes, if there is one.
  void add_whole_graph() {
    const size_t count = graph_.graph.nodes.size();
    if (count > kMaxNodes) return;
    std::vector<NodeId> ids;
    for (size_t node = 0; node < count; ++node) {
      if (graph_.roles[node].kind == FusionKind::None) return;
      ids.push_back({static_cast<int32_t>(node)});
    }
    FusedNodes fused = fuse_nodes(graph_, ids);
    if (fused.group) groups_.push_back(*std::move(fused.group));
  }

  void add_parts(const std::vector<int32_t>& nodes) {
    add_without_first_nodes(nodes);
    split_at_reductions(nodes);
  }

  std::vector<plugin::FusedGroup> take() { return std::move(groups_); }

 private:
  FusionKind kind(int32_t node) const { return graph_.roles[static_cast<size_t>(node)].kind; }

  // Whether nodes outside of the group read a value that the nodes inside read `reads` times.
  bool is_read_outside(ValueId value, int reads) const {
    return graph_.use_counts[static_cast<size_t>(value.index)] > reads;
  }

  // Views that no other node of the group reads need no kernel. Neither do parts of a value that
  // the group must write as a whole anyway.
  void trim_views(std::vector<int32_t>& nodes) const {
    std::map<ValueId, int> reads;
    for (const int32_t node : nodes) {
      for (const ValueId input : graph_.graph[NodeId{node}].inputs) ++reads[input];
    }
    const auto is_needed = [&](const Node& node, FusionKind kind) {
      if (kind != FusionKind::View && kind != FusionKind::Slice) return true;
      const auto is_read = [&](ValueId output) { return reads.contains(output); };
      if (std::ranges::any_of(node.outputs, is_read)) return true;
      const ValueId input = node.inputs[0];
      const auto makes = [&](int32_t each) { return graph_.producer(input) == NodeId{each}; };
      return kind == FusionKind::Slice && !is_read_outside(input, reads.at(input)) &&
             std::ranges::any_of(nodes, makes);
    };
    std::vector<int32_t> kept;
    for (size_t at = nodes.size(); at-- > 0;) {
      const Node& node = graph_.graph[NodeId{nodes[at]}];
      if (is_needed(node, kind(nodes[at]))) {
        kept.push_back(nodes[at]);
        continue;
      }
      for (const ValueId input : node.inputs) {
        if (--reads[input] == 0) reads.erase(input);
      }
    }
    std::reverse(kept.begin(), kept.end());
    nodes = std::move(kept);
  }

  // Libraries have kernels for a single elementwise node or reduction.
  bool is_worth_a_kernel(const std::vector<int32_t>& nodes) const {
    int computing = 0;
    bool is_normalization = false;
    for (const int32_t node : nodes) {
      computing += kind(node) != FusionKind::View && kind(node) != FusionKind::Slice ? 1 : 0;
      is_normalization |= kind(node) == FusionKind::Normalization;
    }
    return computing > 1 || is_normalization;
  }

  bool reads_unfused_node(int32_t node) const {
    for (const ValueId input : graph_.graph[NodeId{node}].inputs) {
      if (input.is_none()) continue;
      const NodeId producer = graph_.producers[static_cast<size_t>(input.index)];
      if (!producer.is_none() && kind(producer.index) == FusionKind::None) return true;
    }
    return false;
  }

  bool reads_one_of(int32_t node, std::span<const int32_t> nodes) const {
    for (const ValueId input : graph_.graph[NodeId{node}].inputs) {
      if (input.is_none()) continue;
      const NodeId producer = graph_.producers[static_cast<size_t>(input.index)];
      if (std::find(nodes.begin(), nodes.end(), producer.index) != nodes.end()) return true;
    }
    return false;
  }

  void add_without_first_nodes(const std::vector<int32_t>& nodes) {
    for (size_t count = 1; count <= kMaxFirstNodes && count < nodes.size(); ++count) {
      const int32_t last = nodes[count - 1];
      const auto before = std::span(nodes).first(count - 1);
      if (!reads_unfused_node(last) && !reads_one_of(last, before)) return;
      add({nodes.begin() + static_cast<std::ptrdiff_t>(count), nodes.end()});
    }
  }

  // Adds two groups: the nodes that do not depend on a reduction, and the rest.
  void split_at_reductions(const std::vector<int32_t>& nodes) {
    std::vector<int32_t> before;
    std::vector<int32_t> rest;
    for (const int32_t node : nodes) {
      const bool reduces =
          kind(node) == FusionKind::Reduction || kind(node) == FusionKind::Normalization;
      (reduces || reads_one_of(node, rest) ? rest : before).push_back(node);
    }
    if (before.empty() || rest.empty()) return;
    add(std::move(before));
    add(std::move(rest));
  }

  const FusionGraph& graph_;
  std::vector<plugin::FusedGroup> groups_;
};

void add_groups(const FusionGraph& graph, GroupList& list) {
  const std::vector<std::vector<int32_t>> found = GroupFinder(graph).find();
  for (const std::vector<int32_t>& nodes : found) list.add(nodes);
  // If a part of a group was extracted as a graph, only nodes outside may have connected its nodes;
  // it is still one group.
  if (found.size() > 1) list.add_whole_graph();
  for (const std::vector<int32_t>& nodes : found) list.add_parts(nodes);
}

}  // namespace

std::vector<plugin::FusedGroup> find_groups(const FusionGraph& graph) {
  GroupList list(graph);
  add_groups(graph, list);
  FusionGraph without_parts = graph;
  bool has_parts = false;
  for (FusionRole& role : without_parts.roles) {
    if (role.kind != FusionKind::Slice && role.kind != FusionKind::Concat) continue;
    role = {};
    has_parts = true;
  }
  // Groups that cut tensors cannot contain reductions, nor layouts with blocks.
  if (has_parts) add_groups(without_parts, list);
  // Both searches may find the same part.
  std::vector<plugin::FusedGroup> groups = list.take();
  std::set<std::vector<int32_t>> seen;
  std::erase_if(groups,
                [&](const plugin::FusedGroup& group) { return !seen.insert(group.nodes).second; });
  return groups;
}

}  // namespace tessera::codegen
