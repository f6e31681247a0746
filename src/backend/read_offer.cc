#include "backend/read_offer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tessera {
namespace {

// The size of the struct in the first version of the contract; later members were appended.
constexpr size_t kMinCandidateBytes = offsetof(tessera_candidate, absorbed);
constexpr size_t kBytesWithAbsorbed = offsetof(tessera_candidate, workspace_for);

[[noreturn]] void refuse(const std::string& reason) { throw IllegalOffer{reason}; }

std::string name_of(const tessera_graph& graph, int32_t value) {
  return "value '" + graph.graph.values[static_cast<size_t>(value)].name + "'";
}

// Distinct values in order of insertion, with fast lookup even for nodes with thousands of values.
class ValueList {
 public:
  // Returns whether it is new.
  bool add(int32_t value) {
    if (has(value)) return false;
    values_.push_back(value);
    if (values_.size() == kMaxToCompare + 1) known_.insert(values_.begin(), values_.end());
    if (values_.size() > kMaxToCompare) known_.insert(value);
    return true;
  }
  bool has(int32_t value) const {
    if (values_.size() > kMaxToCompare) return known_.contains(value);
    return std::find(values_.begin(), values_.end(), value) != values_.end();
  }
  const std::vector<int32_t>& all() const { return values_; }

 private:
  static constexpr size_t kMaxToCompare = 16;
  std::vector<int32_t> values_;
  std::unordered_set<int32_t> known_;  // all values, if there are more than kMaxToCompare
};

// The values that a group reads from outside, and those that are needed outside.
struct GroupBoundary {
  ValueList inputs;              // including constants
  std::vector<int32_t> outputs;  // values that outside nodes read or that are needed
};

GroupBoundary boundary_of(const tessera_graph& graph, std::span<const int32_t> nodes) {
  GroupBoundary boundary;
  const auto is_inside = [&](int32_t node) {
    return std::binary_search(nodes.begin(), nodes.end(), node);
  };
  for (const int32_t id : nodes) {
    const tessera_node& node = graph.nodes[static_cast<size_t>(id)];
    for (const int32_t input : std::span(node.inputs, static_cast<size_t>(node.input_count))) {
      if (input < 0) continue;
      const int32_t producer = graph.values[static_cast<size_t>(input)].producer;
      const bool is_outside = producer < 0 || !is_inside(producer);
      if (is_outside) boundary.inputs.add(input);
    }
    for (const int32_t output : std::span(node.outputs, static_cast<size_t>(node.output_count))) {
      if (output < 0) continue;
      const tessera_value& value = graph.values[static_cast<size_t>(output)];
      const std::span consumers(value.consumers, static_cast<size_t>(value.consumer_count));
      const bool is_read = std::any_of(consumers.begin(), consumers.end(),
                                       [&](int32_t reader) { return !is_inside(reader); });
      if (is_read || (value.flags & TESSERA_VALUE_NEEDED) != 0) boundary.outputs.push_back(output);
    }
  }
  return boundary;
}

class OfferReader {
 public:
  OfferReader(const Plugin& plugin, const tessera_graph& graph, const LayoutTable& layouts)
      : plugin_(plugin), graph_(graph), layouts_(layouts) {}

  Candidate read(const tessera_candidate& abi) const {
    if (abi.struct_size < kMinCandidateBytes) {
      refuse("its struct_size is not that of the contract");
    }
    constexpr uint32_t kNoKernel = TESSERA_CANDIDATE_VIEW | TESSERA_CANDIDATE_JOINT;
    if (abi.build == nullptr && (abi.flags & kNoKernel) == 0) {
      refuse("it has no function to build a kernel");
    }
    if (abi.algorithm == nullptr) refuse("its algorithm is null");
    if (abi.workspace_bytes < 0 || abi.library_bytes < 0) refuse("it asks for negative memory");
    if (abi.workspace_bytes > kMaxPluginBytes || abi.library_bytes > kMaxPluginBytes) {
      refuse("it asks for more memory than any machine has");
    }
    Candidate candidate;
    candidate.algorithm = abi.algorithm;
    read_nodes(abi, candidate);
    check_small_types(abi);
    candidate.device = read_device(abi);
    const GroupBoundary boundary =
        boundary_of(graph_, {abi.nodes, static_cast<size_t>(abi.node_count)});
    read_inputs(abi, boundary, candidate);
    read_outputs(abi, boundary, candidate);
    read_absorbed(abi, boundary, candidate);
    check_built_for(abi);
    candidate.workspace_bytes = abi.workspace_bytes;
    candidate.library_bytes = abi.library_bytes;
    candidate.optimistic_seconds = abi.optimistic_seconds;
    candidate.build_seconds = abi.build_seconds;
    candidate.flags = abi.flags;
    return candidate;
  }

 private:
  void read_nodes(const tessera_candidate& abi, Candidate& candidate) const {
    if (abi.node_count < 1 || abi.nodes == nullptr) refuse("it covers no node");
    const std::span nodes(abi.nodes, static_cast<size_t>(abi.node_count));
    for (size_t index = 0; index < nodes.size(); ++index) {
      if (nodes[index] < 0 || static_cast<size_t>(nodes[index]) >= graph_.nodes.size()) {
        refuse("it names node " + std::to_string(nodes[index]) + ", which does not exist");
      }
      if (index > 0 && nodes[index] <= nodes[index - 1]) refuse("its nodes are not ascending");
      candidate.nodes.push_back({nodes[index]});
    }
    check_convex(nodes);
  }

  // A plug-in of older headers does not know what such a node computes.
  void check_small_types(const tessera_candidate& abi) const {
    if ((abi.flags & TESSERA_CANDIDATE_KNOWS_SMALL_TYPES) != 0) return;
    const std::span nodes(abi.nodes, static_cast<size_t>(abi.node_count));
    for (const int32_t node : nodes) {
      const std::string found = explain_small_type(graph_.graph, {node});
      if (!found.empty()) refuse("it does not say that it knows " + found);
    }
  }

  // A group runs as one step, so it cannot read values that others compute from its results.
  void check_convex(std::span<const int32_t> nodes) const {
    if (nodes.size() == 1) return;
    std::unordered_set<int32_t> depends;  // values that depend on the group
    for (int32_t id = nodes.front(); id <= nodes.back(); ++id) {
      const tessera_node& node = graph_.nodes[static_cast<size_t>(id)];
      const bool is_inside = std::binary_search(nodes.begin(), nodes.end(), id);
      bool reads_group = is_inside;
      for (const int32_t input : std::span(node.inputs, static_cast<size_t>(node.input_count))) {
        if (input < 0 || !depends.contains(input)) continue;
        const int32_t producer = graph_.values[static_cast<size_t>(input)].producer;
        const bool is_own = std::binary_search(nodes.begin(), nodes.end(), producer);
        if (is_inside && !is_own) {
          refuse("between its nodes lies node " + std::to_string(producer) +
                 ", which is not one of them");
        }
        reads_group = true;
      }
      if (!reads_group) continue;
      for (const int32_t output : std::span(node.outputs, static_cast<size_t>(node.output_count))) {
        if (output >= 0) depends.insert(output);
      }
    }
  }

  void check_built_for(const tessera_candidate& abi) const {
    if ((abi.flags & TESSERA_CANDIDATE_BUILT_FOR_ALL) != 0 || abi.built_for_count == 0) return;
    if (abi.built_for_count < 0 || abi.built_for == nullptr) {
      refuse("the list of dimensions that it is built for is null");
    }
    for (const tessera_built_for& dimension :
         std::span(abi.built_for, static_cast<size_t>(abi.built_for_count))) {
      const bool has_port = dimension.input_port >= 0 && dimension.input_port < abi.input_count;
      const int32_t rank =
          has_port
              ? graph_.values[static_cast<size_t>(abi.inputs[dimension.input_port].value)].type.rank
              : 0;
      if (dimension.axis < 0 || dimension.axis >= rank) {
        refuse("it is built for axis " + std::to_string(dimension.axis) + " of input " +
               std::to_string(dimension.input_port) + ", which does not exist");
      }
    }
  }

  // The device of the ports, which must be the same for all.
  DeviceId read_device(const tessera_candidate& abi) const {
    std::optional<std::string_view> device;  // "": the host
    const auto note = [&](const char* layout) {
      const std::string_view name = layout == nullptr ? TESSERA_LAYOUT_DEFAULT : layout;
      const size_t begin = name.find('@');
      const auto of_port = begin == std::string_view::npos ? "" : name.substr(begin + 1);
      if (device && *device != of_port) refuse("its ports are on two devices");
      device = of_port;
    };
    if (abi.inputs != nullptr) {
      for (int32_t index = 0; index < abi.input_count; ++index) note(abi.inputs[index].layout);
    }
    if (abi.outputs != nullptr) {
      for (int32_t index = 0; index < abi.output_count; ++index) note(abi.outputs[index].layout);
    }
    if (!device || device->empty()) return kHostDevice;
    const std::string name(*device);
    const std::string reason = layouts_.explain_left_out(plugin_, name);
    if (!reason.empty()) throw UnusableOffer{"its device '" + name + "' is not used: " + reason};
    const std::optional<DeviceId> found = layouts_.find_device(name);
    if (!found || &layouts_.device(*found).plugin() != &plugin_) {
      refuse("its ports are on device '" + name + "', which the backend does not have");
    }
    return *found;
  }

  LayoutId read_layout(const char* name, int32_t value) const {
    if (name == nullptr) return kDefaultLayout;
    // read_device() found the device.
    if (name[0] == TESSERA_LAYOUT_ANY_DENSE[0] && (name[1] == '\0' || name[1] == '@')) {
      return kAnyDense;
    }
    if (name == tessera::name(SparseFormat::Csr) ||
        name == tessera::name(SparseFormat::RowSparse)) {
      return read_sparse_layout(name, value);
    }
    const std::optional<LayoutId> layout = layouts_.find(name);
    // A plug-in may offer kernels in a shared layout although no opened plug-in provides
    // conversions.
    if (!layout && is_shared_layout_name(name)) throw UnusableOffer{};
    if (!layout || layouts_.sparse_form(*layout)) {
      refuse("it wants layout '" + std::string(name) + "', which no backend provides");
    }
    if (!can_hold(layouts_, *layout, graph_.graph[ValueId{value}].type)) {
      if (is_shared_layout_name(name)) throw UnusableOffer{};
      refuse("its layout '" + std::string(name) + "' does not hold " + name_of(graph_, value));
    }
    return *layout;
  }

  // The layout name does not contain the capacity; the sparse form of the value does.
  LayoutId read_sparse_layout(const char* name, int32_t value) const {
    const std::optional<SparseForm>& form = graph_.graph[ValueId{value}].sparse;
    const std::optional<LayoutId> layout =
        form && name == tessera::name(form->format) ? layouts_.find(text(*form)) : std::nullopt;
    if (!layout) {
      refuse("its layout '" + std::string(name) + "' is not one that " + name_of(graph_, value) +
             " may lie in");
    }
    return *layout;
  }

  void read_inputs(const tessera_candidate& abi, const GroupBoundary& boundary,
                   Candidate& candidate) const {
    if (abi.input_count < 0 || (abi.input_count > 0 && abi.inputs == nullptr)) {
      refuse("its list of inputs is null");
    }
    ValueList seen;
    for (const tessera_input_port& port :
         std::span(abi.inputs, static_cast<size_t>(abi.input_count))) {
      if (!boundary.inputs.has(port.value)) {
        refuse("its input " + std::to_string(port.value) + " is not read by its nodes");
      }
      if (!seen.add(port.value)) refuse("it lists " + name_of(graph_, port.value) + " twice");
      const bool is_constant =
          (graph_.values[static_cast<size_t>(port.value)].flags & TESSERA_VALUE_CONSTANT) != 0;
      if (port.pack != nullptr) check_pack(*port.pack, port.value, is_constant);
      candidate.inputs.push_back(
          {.value = {port.value},
           .layout = read_layout(port.layout, port.value),
           .alignment_bytes = read_alignment(port.alignment_bytes, "input", port.value),
           .accepts_strides = port.accepts_strides != 0 && candidate.device == kHostDevice,
           .pack = port.pack,
           .part = read_part(port.part)});
    }
    for (const int32_t value : boundary.inputs.all()) {
      const bool is_constant =
          (graph_.values[static_cast<size_t>(value)].flags & TESSERA_VALUE_CONSTANT) != 0;
      // A kernel may have absorbed a small constant already, so a constant may be omitted.
      if (!is_constant && !seen.has(value)) refuse("it leaves out input " + name_of(graph_, value));
    }
  }

  void read_absorbed(const tessera_candidate& abi, const GroupBoundary& boundary,
                     Candidate& candidate) const {
    if (abi.struct_size < kBytesWithAbsorbed) return;
    if (abi.absorbed_count < 0 || (abi.absorbed_count > 0 && abi.absorbed == nullptr)) {
      refuse("its list of absorbed constants is null");
    }
    for (const int32_t value : std::span(abi.absorbed, static_cast<size_t>(abi.absorbed_count))) {
      const ValueId id{value};
      if (!boundary.inputs.has(value) || !graph_.graph[id].is_constant()) {
        refuse("it absorbs " + std::to_string(value) +
               ", which is no constant that its nodes read");
      }
      if (graph_.graph[id].is_state)
        refuse("it absorbs " + name_of(graph_, value) + ", which changes");
      const bool is_port =
          std::any_of(candidate.inputs.begin(), candidate.inputs.end(),
                      [&](const CandidateInput& port) { return port.value == id; });
      if (is_port)
        refuse("it absorbs " + name_of(graph_, value) + ", which is one of its inputs too");
      candidate.absorbed.push_back(id);
    }
  }

  void check_pack(const tessera_pack& pack, int32_t value, bool is_constant) const {
    if (!is_constant) refuse("it packs " + name_of(graph_, value) + ", which is no constant");
    if (pack.struct_size != sizeof(pack) || pack.id == nullptr || pack.pack == nullptr ||
        pack.bytes < 0) {
      refuse("its pack of " + name_of(graph_, value) + " lacks an id, a function or a size");
    }
  }

  void read_outputs(const tessera_candidate& abi, const GroupBoundary& boundary,
                    Candidate& candidate) const {
    if (abi.output_count < 0 || (abi.output_count > 0 && abi.outputs == nullptr)) {
      refuse("its list of outputs is null");
    }
    ValueList seen;
    for (const tessera_output_port& port :
         std::span(abi.outputs, static_cast<size_t>(abi.output_count))) {
      if (port.value < 0 || static_cast<size_t>(port.value) >= graph_.values.size() ||
          !std::binary_search(abi.nodes, abi.nodes + abi.node_count,
                              graph_.values[static_cast<size_t>(port.value)].producer)) {
        refuse("its output " + std::to_string(port.value) + " is not made by its nodes");
      }
      if (!seen.add(port.value)) refuse("it lists " + name_of(graph_, port.value) + " twice");
      candidate.outputs.push_back(read_output(abi, port, candidate));
    }
    for (const int32_t value : boundary.outputs) {
      if (!seen.has(value)) refuse("it swallows " + name_of(graph_, value) + ", which others need");
    }
  }

  CandidateOutput read_output(const tessera_candidate& abi, const tessera_output_port& port,
                              const Candidate& candidate) const {
    const uint32_t requests = port.requests == 0 ? uint32_t{TESSERA_REQUEST_WRITE} : port.requests;
    const bool needs_input = (requests & (TESSERA_REQUEST_IN_PLACE | TESSERA_REQUEST_ADD)) != 0;
    constexpr uint32_t kKnown = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE |
                                TESSERA_REQUEST_ADD | TESSERA_REQUEST_NONE;
    if ((requests & ~kKnown) != 0) {
      refuse("its output " + name_of(graph_, port.value) + " has an unknown request");
    }
    if (needs_input && (port.in_place_input < 0 || port.in_place_input >= abi.input_count)) {
      refuse("its output " + name_of(graph_, port.value) +
             " names an in-place input that does not exist");
    }
    const bool has_size = known_type(graph_.graph[ValueId{port.value}].type).has_value();
    const bool says_unknown = (port.flags & TESSERA_OUTPUT_SIZE_UNKNOWN) != 0;
    if (!has_size && !says_unknown) {
      refuse("the size of its output " + name_of(graph_, port.value) +
             " is not known before running");
    }
    if (!has_size && candidate.device != kHostDevice) {
      throw UnusableOffer{"the size of an output is not known before running"};
    }
    return {.value = {port.value},
            .layout = read_layout(port.layout, port.value),
            .requests = requests,
            .in_place_input = needs_input ? port.in_place_input : -1,
            .is_size_unknown = !has_size,
            .alignment_bytes = read_alignment(port.alignment_bytes, "output", port.value),
            .accepts_strides = (port.flags & TESSERA_OUTPUT_ACCEPTS_STRIDES) != 0 &&
                               candidate.device == kHostDevice,
            .part = read_part(port.part)};
  }

  int64_t read_alignment(int64_t bytes, const std::string& side, int32_t value) const {
    if (bytes == 0) return TESSERA_ALIGNMENT_BYTES;
    if (bytes > TESSERA_ALIGNMENT_BYTES) {
      refuse("its " + side + " " + name_of(graph_, value) + " is to be aligned to more than " +
             std::to_string(TESSERA_ALIGNMENT_BYTES) + " bytes, which the host does not promise");
    }
    if (bytes < 0 || (bytes & (bytes - 1)) != 0) {
      refuse("the alignment of its " + side + " " + name_of(graph_, value) + " is no power of two");
    }
    return bytes;
  }

  static StoragePart read_part(const tessera_part* part) {
    if (part == nullptr) return {};
    if (part->stride_count < 0 || (part->stride_count > 0 && part->strides == nullptr)) {
      refuse("it says that it is a view, but a list of strides is null");
    }
    return {part->offset_bytes,
            {part->strides, part->strides + static_cast<size_t>(part->stride_count)}};
  }

  const Plugin& plugin_;
  const tessera_graph& graph_;
  const LayoutTable& layouts_;
};

StoredType stored(const tessera_graph& graph, const LayoutTable& layouts, ValueId value,
                  LayoutId layout) {
  const std::optional<TensorType> type = known_type(graph.graph[value].type);
  if (!type) {
    refuse("it says that " + name_of(graph, value.index) +
           " shares memory, whose size is not known");
  }
  // can_hold() was checked when the port was read.
  return {*type, layouts.format(layout), *layouts.storage_bytes(layout, *type)};
}

void settle_part(StoragePart& part, const StoredType& tensor, const StoredType& whole,
                 const Device* device, const std::string& port) {
  const std::string wrong = explain_illegal_part(part, tensor, whole);
  if (!wrong.empty()) {
    refuse("it says that it is a view, but its " + port + " " + wrong);
  }
  part = simplified(part, tensor);
  const bool is_usable =
      device == nullptr || (part.is_dense() && part.offset_bytes % device->alignment_bytes() == 0);
  if (!is_usable) throw UnusableOffer{"its device has no views at such a position"};
}

}  // namespace

std::string explain_small_type(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const ValueId value : *values) {
      if (value.is_none() || !is_small(graph[value].type.element)) continue;
      return std::string(name(graph[value].type.element)) + ", the type of value '" +
             graph[value].name + "'";
    }
  }
  return "";
}

Candidate read_offer(const tessera_candidate& abi, const Plugin& plugin, const tessera_graph& graph,
                     const LayoutTable& layouts) {
  return OfferReader(plugin, graph, layouts).read(abi);
}

void check_parts(Candidate& candidate, const tessera_graph& graph, const LayoutTable& layouts) {
  if (!candidate.is_view() && !candidate.is_joint()) return;
  if (candidate.is_view() && candidate.is_joint()) refuse("it is a view and joint at once");
  if (candidate.inputs.empty() || candidate.outputs.empty() ||
      (candidate.is_joint() && candidate.outputs.size() != 1)) {
    refuse("it says that it is a view, which has an input and an output");
  }
  CandidateInput& input = candidate.inputs[0];
  CandidateOutput& output = candidate.outputs[0];
  const Device* device =
      candidate.device == kHostDevice ? nullptr : &layouts.device(candidate.device);
  if (candidate.is_view()) {
    const StoredType whole = stored(graph, layouts, input.value, input.layout);
    for (CandidateOutput& port : candidate.outputs) {
      settle_part(port.part, stored(graph, layouts, port.value, port.layout), whole, device,
                  "output " + name_of(graph, port.value.index));
    }
    return;
  }
  const StoredType whole = stored(graph, layouts, output.value, output.layout);
  std::vector<StoragePart> parts;
  std::vector<StoredType> tensors;
  for (CandidateInput& port : candidate.inputs) {
    tensors.push_back(stored(graph, layouts, port.value, port.layout));
    settle_part(port.part, tensors.back(), whole, device,
                "input " + name_of(graph, port.value.index));
    parts.push_back(port.part);
  }
  const std::string wrong = explain_incomplete(parts, tensors, whole);
  if (!wrong.empty()) refuse("it says that its inputs make up its output, but " + wrong);
}

bool can_hold(const LayoutTable& layouts, LayoutId layout, const Type& type) {
  if (layout == kDefaultLayout) return true;
  const std::optional<TensorType> known = known_type(type);
  return known && layouts.storage_bytes(layout, *known).has_value();
}

}  // namespace tessera
