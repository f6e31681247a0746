#include "backend/fusion_view.h"

#include <string>

#include "tessera/error.h"

namespace tessera {
namespace {

std::vector<tessera_fused_access> views_of(const std::vector<plugin::FusedAccess>& accesses) {
  std::vector<tessera_fused_access> views;
  for (const plugin::FusedAccess& access : accesses) {
    views.push_back({access.port, access.data_type, access.is_whole ? 1 : 0, access.instruction,
                     access.offset, access.strides.data()});
  }
  return views;
}

void show(const plugin::FusedGroup& group, tessera_fused_group_visitor visitor, void* user) {
  const std::vector<tessera_fused_access> operands = views_of(group.operands);
  const std::vector<tessera_fused_access> results = views_of(group.results);
  tessera_fused_group view = {};
  view.struct_size = sizeof view;
  view.expression_version = TESSERA_EXPRESSION_VERSION;
  view.nodes = group.nodes.data();
  view.node_count = static_cast<int32_t>(group.nodes.size());
  view.inputs = group.inputs.data();
  view.input_count = static_cast<int32_t>(group.inputs.size());
  view.outputs = group.outputs.data();
  view.output_count = static_cast<int32_t>(group.outputs.size());
  view.dims = group.dims.data();
  view.rank = static_cast<int32_t>(group.dims.size());
  view.reduced_axes = group.reduced_axes;
  view.operands = operands.data();
  view.operand_count = static_cast<int32_t>(operands.size());
  view.results = results.data();
  view.result_count = static_cast<int32_t>(results.size());
  view.instructions = group.instructions.data();
  view.instruction_count = static_cast<int32_t>(group.instructions.size());
  view.text = group.text.c_str();
  view.flops = group.flops;
  view.bytes = group.bytes;
  visitor(user, &view);
}

void require_version(uint32_t expression_version) {
  if (expression_version >= TESSERA_EXPRESSION_VERSION) return;
  throw Error(ErrorKind::Unsupported, "fused groups",
              "expected a plug-in that knows version " +
                  std::to_string(TESSERA_EXPRESSION_VERSION) + " of expressions, found version " +
                  std::to_string(expression_version));
}

}  // namespace

const codegen::FusionGraph& FusionView::fusion_graph() const {
  std::call_once(has_roles_, [this] { fusion_graph_.emplace(graph_); });
  return *fusion_graph_;
}

void FusionView::find(uint32_t expression_version, tessera_fused_group_visitor visitor,
                      void* user) const {
  require_version(expression_version);
  if (!finds_groups_) return;
  std::call_once(has_groups_, [this] { groups_ = codegen::find_groups(fusion_graph()); });
  for (const plugin::FusedGroup& group : groups_) show(group, visitor, user);
}

void FusionView::fuse(std::span<const NodeId> nodes, uint32_t expression_version,
                      tessera_fused_group_visitor visitor, void* user) const {
  require_version(expression_version);
  const codegen::FusedNodes fused = codegen::fuse_nodes(fusion_graph(), nodes);
  if (!fused.group) throw Error(ErrorKind::Unsupported, "fused group", fused.refusal);
  show(*fused.group, visitor, user);
}

}  // namespace tessera
