#include "backend/graph_view.h"

#include <string>
#include <utility>

#include "ops/work.h"
#include "tessera/error.h"

using tessera::Body;
using tessera::Capture;
using tessera::Node;
using tessera::Shape;
using tessera::Value;
using tessera::ValueId;

static_assert(static_cast<int>(tessera::SparseFormat::Csr) == TESSERA_CSR);
static_assert(static_cast<int>(tessera::SparseFormat::RowSparse) == TESSERA_ROW_SPARSE);
static_assert(static_cast<int>(tessera::DataType::Bool) == TESSERA_BOOL);
static_assert(static_cast<int>(tessera::DataType::UInt8) == TESSERA_UINT8);
static_assert(static_cast<int>(tessera::DataType::Float32) == TESSERA_FLOAT32);
static_assert(static_cast<int>(tessera::DataType::String) == TESSERA_STRING);
static_assert(static_cast<int>(tessera::DataType::Float8E4M3FN) == TESSERA_FLOAT8E4M3FN);
static_assert(static_cast<int>(tessera::DataType::UInt2) == TESSERA_UINT2);

tessera_graph::tessera_graph(const tessera::Graph& source, const tessera::ops::Registry& ops,
                             bool fuses)
    : graph(source),
      registry(ops),
      reads(source.nodes.size(), source.values.size()),
      fusion_(source, fuses) {
  fill_values();
  fill_nodes();
}

void tessera_graph::fill_values() {
  const size_t count = graph.values.size();
  dims_.resize(count);
  consumers_.resize(count);
  values.resize(count);
  small_types_.resize(count);
  for (size_t index = 0; index < count; ++index) {
    const Value& value = graph.values[index];
    tessera_value& abi = values[index];
    abi.struct_size = sizeof(abi);
    abi.name = value.name.c_str();
    abi.producer = -1;
    abi.type.data_type = static_cast<int32_t>(value.type.element);
    abi.type.rank = -1;
    // The host runs nodes of strings itself; no kernel gets memory for them.
    if (value.type.shape && value.type.element != tessera::DataType::String) {
      dims_[index] = tessera::dims_or_unknown(*value.type.shape);
      abi.type.rank = static_cast<int32_t>(dims_[index].size());
    }
    abi.type.dims = dims_[index].data();
    if (tessera::is_small(value.type.element)) {
      small_types_[index] = std::exchange(abi.type, {TESSERA_UNDEFINED, -1, nullptr});
      abi.small_type = &small_types_[index];
    }
    if (value.is_constant()) {
      abi.flags |= TESSERA_VALUE_CONSTANT;
      abi.constant = value.constant.data();
    }
    if (value.sparse) {
      abi.sparse_format = static_cast<int32_t>(value.sparse->format);
      abi.sparse_capacity = value.sparse->capacity;
    }
    if (value.is_state) abi.flags |= TESSERA_VALUE_STATE;
  }
  const auto flag = [&](ValueId id, uint32_t bit) {
    values[static_cast<size_t>(id.index)].flags |= bit;
  };
  for (const ValueId id : graph.inputs) flag(id, TESSERA_VALUE_INPUT);
  for (const ValueId id : graph.outputs) flag(id, TESSERA_VALUE_NEEDED);
  for (const ValueId id : graph.kept) flag(id, TESSERA_VALUE_NEEDED);
}

void tessera_graph::fill_nodes() {
  const size_t count = graph.nodes.size();
  nodes.resize(count);
  input_ids_.resize(count);
  output_ids_.resize(count);
  for (size_t index = 0; index < count; ++index) {
    const Node& node = graph.nodes[index];
    const auto read = [&](ValueId id) {
      input_ids_[index].push_back(id.index);
      if (!id.is_none()) {
        consumers_[static_cast<size_t>(id.index)].push_back(static_cast<int32_t>(index));
      }
    };
    for (const ValueId id : node.inputs) read(id);
    // A plug-in sees what nested graphs capture as further inputs.
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) read(capture.outer);
    }
    for (const ValueId id : node.outputs) {
      output_ids_[index].push_back(id.index);
      if (!id.is_none()) {
        values[static_cast<size_t>(id.index)].producer = static_cast<int32_t>(index);
      }
    }
    tessera_node& abi = nodes[index];
    abi.struct_size = sizeof(abi);
    abi.version = node.version;
    abi.name = node.name.c_str();
    abi.op = node.op.c_str();
    abi.domain = node.domain.c_str();
    abi.inputs = input_ids_[index].data();
    abi.input_count = static_cast<int32_t>(input_ids_[index].size());
    abi.outputs = output_ids_[index].data();
    abi.output_count = static_cast<int32_t>(output_ids_[index].size());
    abi.body_count = static_cast<int32_t>(node.bodies.size());
    abi.is_random = registry.has_trait(node, tessera::ops::kRandom) ? 1 : 0;
    abi.flops = tessera::ops::node_flops(graph, node, registry).value_or(-1);
    abi.bytes = tessera::ops::node_bytes(graph, node, registry).value_or(-1);
  }
  for (size_t index = 0; index < values.size(); ++index) {
    values[index].consumers = consumers_[index].data();
    values[index].consumer_count = static_cast<int32_t>(consumers_[index].size());
  }
}

const tessera::Matches& tessera_graph::matches(std::string_view text) const {
  const std::lock_guard lock(matches_mutex_);
  const auto known = matches_.find(text);
  if (known != matches_.end()) return known->second;
  tessera::Matches found;
  found.pattern = tessera::parse_pattern(text);
  if (!pattern_index_) pattern_index_.emplace(graph);
  found.matches = tessera::find_matches(graph, *pattern_index_, found.pattern);
  return matches_.emplace(text, std::move(found)).first->second;
}

const tessera_attribute* tessera_graph::attribute(int32_t node, const char* name) const {
  if (node < 0 || static_cast<size_t>(node) >= graph.nodes.size() || name == nullptr)
    return nullptr;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<tessera::AttributeViews>& views = attributes_[node];
  if (!views) {
    views = std::make_unique<tessera::AttributeViews>(
        graph.nodes[static_cast<size_t>(node)].attributes);
  }
  return views->find(name);
}

bool tessera_graph::has_read(int32_t node, const std::string& name) const {
  return reads.has_node(node) || reads.has_attribute(attribute(node, name.c_str()));
}

namespace tessera {

std::vector<int64_t> dims_or_unknown(const Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(shape.size());
  for (const Dim& dim : shape) dims.push_back(dim.is_known() ? dim.value() : -1);
  return dims;
}

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
