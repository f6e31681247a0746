// A graph in the form that plug-ins read: the opaque tessera_graph of the contract.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/contract/attribute_view.h"
#include "backend/contract/pattern.h"
#include "backend/node_reads.h"
#include "codegen/groups/fuse_nodes.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/backend_abi.h"

namespace tessera {

struct Matches {
  Pattern pattern;
  std::vector<std::vector<NodeId>> matches;
};

// Fused groups of a graph in the form of the contract: the services find_fused_groups and
// fuse_nodes of tessera/backend_host_abi.h. Finds the groups of one graph when somebody asks for
// them first. Thread-safe; the graph must outlive it.
class FusionView {
 public:
  // `finds_groups`: otherwise find() finds nothing.
  explicit FusionView(const Graph& graph, bool finds_groups = true)
      : graph_(graph), finds_groups_(finds_groups) {}

  // Calls `visitor` for each group that is worth a kernel. Throws Unsupported if the plug-in does
  // not know this version of expressions.
  void find(uint32_t expression_version, tessera_fused_group_visitor visitor, void* user) const;
  // Calls `visitor` for the group of these nodes (ascending, of the graph). Throws Unsupported with
  // the reason if there is none, or as find() does.
  void fuse(std::span<const NodeId> nodes, uint32_t expression_version,
            tessera_fused_group_visitor visitor, void* user) const;

 private:
  const codegen::FusionGraph& fusion_graph() const;

  const Graph& graph_;
  bool finds_groups_;
  mutable std::once_flag has_roles_;
  mutable std::optional<codegen::FusionGraph> fusion_graph_;
  mutable std::once_flag has_groups_;
  mutable std::vector<plugin::FusedGroup> groups_;
};

}  // namespace tessera

// C structs over a graph and a registry, which must outlive it. Reading is thread-safe, but only
// one plug-in at a time proposes for it, because `reads` does not tell plug-ins apart.
struct tessera_graph {
  // `fuses`: find_fused_groups() finds groups.
  tessera_graph(const tessera::Graph& graph, const tessera::ops::Registry& registry,
                bool fuses = true);
  tessera_graph(const tessera_graph&) = delete;
  tessera_graph& operator=(const tessera_graph&) = delete;

  const tessera::Graph& graph;
  const tessera::ops::Registry& registry;
  std::vector<tessera_node> nodes;
  std::vector<tessera_value> values;
  // Records what the proposing plug-in has read; it is no part of the graph.
  mutable tessera::NodeReads reads;

  // nullptr if there is none.
  const tessera_attribute* attribute(int32_t node, const char* name) const;
  // Whether the plug-in has read the attribute, or all of the node.
  bool has_read(int32_t node, const std::string& attribute) const;
  // The matches of a pattern given as text. Cached, because backends search for dozens of patterns,
  // and again for another number of threads. Throws as parse_pattern() does.
  const tessera::Matches& matches(std::string_view pattern) const;
  const tessera::FusionView& fusion() const { return fusion_; }

 private:
  void fill_values();
  void fill_nodes();

  std::vector<std::vector<int64_t>> dims_;        // by value; -1 if unknown
  std::vector<tessera_type> small_types_;         // by value
  std::vector<std::vector<int32_t>> consumers_;   // by value
  std::vector<std::vector<int32_t>> input_ids_;   // by node
  std::vector<std::vector<int32_t>> output_ids_;  // by node
  tessera::FusionView fusion_;
  mutable std::mutex mutex_;  // protects the next member
  mutable std::map<int32_t, std::unique_ptr<tessera::AttributeViews>> attributes_;
  mutable std::mutex matches_mutex_;  // protects the next members
  mutable std::optional<tessera::PatternIndex> pattern_index_;
  mutable std::map<std::string, tessera::Matches, std::less<>> matches_;
};

namespace tessera {

// Dimensions in the form of the contract: -1 for a symbol.
std::vector<int64_t> dims_or_unknown(const Shape& shape);

}  // namespace tessera
