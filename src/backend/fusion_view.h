// Fused groups of a graph in the form of the contract: the services find_fused_groups and
// fuse_nodes of tessera/backend_host_abi.h.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "codegen/find_groups.h"
#include "graph/graph.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Finds the groups of one graph when somebody asks for them first. Thread-safe; the graph must
// outlive it.
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
