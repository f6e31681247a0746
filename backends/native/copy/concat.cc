// Concat and Split, in each layout in which every part ends at a block of channels.
#include <string>
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

constexpr int32_t kFirstRequiredAxisVersion = 4;

// Whether every part along the axis of channels begins at a block of `block` channels.
bool begin_at_blocks(const std::vector<Value>& parts, int64_t block) {
  int64_t start = 0;
  for (const Value& part : parts) {
    if (start % block != 0) return false;
    start += part.type().dims[1];
  }
  return true;
}

// Copies from the parts of a tensor (Concat) or to them (Split).
struct PartCopies {
  std::vector<size_t> part_ports;
  size_t axis = 0;
  bool is_split = false;

  void describe(const CopyPorts& ports, const AddCopy& add) const {
    const StorageAxes whole = is_split ? ports.input(0) : ports.output(0);
    int64_t start = 0;  // in steps along the axis
    for (const size_t port : part_ports) {
      const StorageAxes part = is_split ? ports.output(port) : ports.input(port);
      PortCopy port_copy;
      (is_split ? port_copy.output : port_copy.input) = port;
      (is_split ? port_copy.from_offset : port_copy.to_offset) = start * whole[axis].stride;
      for (size_t position = 0; position < part.count; ++position) {
        const int64_t in_part = part[position].stride;
        const int64_t in_whole = whole[position].stride;
        port_copy.nest.add(part[position].dim, is_split ? in_whole : in_part,
                           is_split ? in_part : in_whole);
      }
      add(port_copy);
      start += part[axis].dim;
    }
  }
};

std::vector<Value> distinct(const std::vector<Value>& values, std::vector<size_t>& ports) {
  std::vector<Value> result;
  for (const Value& value : values) {
    size_t port = 0;
    while (port < result.size() && result[port].id() != value.id()) ++port;
    if (port == result.size()) result.push_back(value);
    ports.push_back(port);
  }
  return result;
}

// Whether the sizes of the parts can change although those of the inputs do not.
bool has_free_parts(const Node& node, bool is_split) {
  return is_split && node.input(1).is_present() && !node.input(1).is_constant();
}

void offer_joint(ProposeContext& context, const Node& node, const std::vector<Value>& parts,
                 const Value& whole, size_t axis, bool is_split) {
  PartCopies copies = {.part_ports = {}, .axis = axis, .is_split = is_split};
  const std::vector<Value> values = distinct(parts, copies.part_ports);
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(whole.type())) break;
    CopyOffer offer;
    offer.input_layout = layout;
    offer.output_layout = layout;
    offer.inputs = is_split ? std::vector<Value>{whole} : values;
    offer.outputs = is_split ? values : std::vector<Value>{whole};
    const int64_t block = storage_order(layout).block;
    if (block > 1 && axis == 1) {
      if (has_free_parts(node, is_split) || !begin_at_blocks(parts, block)) continue;
      for (size_t port = 0; port < offer.inputs.size(); ++port) {
        offer.built_for.push_back({static_cast<int32_t>(port), 1});
      }
    }
    offer.describe = [copies](const CopyPorts& ports, const AddCopy& add) {
      copies.describe(ports, add);
    };
    offer_copies(context, node, offer);
  }
}

void offer_concat(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  std::vector<Value> parts;
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (const auto reason = explain_uncopyable(node.input(index))) {
      return context.refuse(node.id(), *reason);
    }
    parts.push_back(node.input(index));
  }
  const int64_t otherwise = node.version() < kFirstRequiredAxisVersion ? 1 : 0;
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis", otherwise),
                                              node.output(0).type().dims.size());
  offer_joint(context, node, parts, node.output(0), axis, false);
}

// The sizes of the outputs say where each part begins.
void offer_split(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  std::vector<Value> parts;
  for (size_t index = 0; index < node.output_count(); ++index) parts.push_back(node.output(index));
  const size_t axis =
      plugin::normalized_axis(node.attributes().get_int("axis"), node.input(0).type().dims.size());
  offer_joint(context, node, parts, node.input(0), axis, true);
}

}  // namespace

void propose_concats(ProposeContext& context) {
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat(context, node); });
  context.for_each({"Split"}, [&](const Node& node) { offer_split(context, node); });
}

}  // namespace tessera::native
