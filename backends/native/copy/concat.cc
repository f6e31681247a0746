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

// A part of a larger tensor.
struct LaidOutPart {
  StridedLayout layout;
  int64_t start = 0;  // along the axis, in its steps
};

// The parts along `axis` in this layout; empty if one of them does not end at a block of channels.
std::vector<LaidOutPart> parts_in(const std::string& layout, const std::vector<Value>& values,
                                  size_t axis) {
  std::vector<LaidOutPart> parts;
  int64_t start = 0;  // in channels if axis is 1
  for (const Value& value : values) {
    const std::vector<int64_t> dims = value.type().dims;
    LaidOutPart part{strided_layout(layout, dims)};
    const int64_t block = axis == 1 ? part.layout.block : 1;
    if (start % block != 0) return {};
    part.start = start / block;
    start += dims[axis];
    parts.push_back(std::move(part));
  }
  return parts;
}

// The copy from the whole (Split) or to it (Concat).
PortCopy port_copy_of(const LaidOutPart& part, const StridedLayout& whole, size_t axis,
                      bool is_split) {
  PortCopy port_copy;
  port_copy.strides = is_split ? whole.strides : part.layout.strides;
  const StridedLayout& target = is_split ? part.layout : whole;
  for (size_t position = 0; position < part.layout.dims.size(); ++position) {
    port_copy.axes.push_back({.count = part.layout.dims[position],
                              .input_axis = static_cast<int>(position),
                              .to = target.strides[position]});
  }
  if (is_split) {
    port_copy.starts.assign(whole.dims.size(), 0);
    port_copy.starts[axis] = part.start;
  } else {
    port_copy.to_offset = part.start * whole.strides[axis];
  }
  return port_copy;
}

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

void offer_joint(ProposeContext& context, const Node& node, const std::vector<Value>& parts,
                 const Value& whole, size_t axis, bool is_split) {
  std::vector<size_t> ports;
  const std::vector<Value> values = distinct(parts, ports);
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(whole.type())) break;
    const std::vector<LaidOutPart> laid_out = parts_in(layout, parts, axis);
    if (laid_out.empty()) continue;
    const StridedLayout joint = strided_layout(layout, whole.type().dims);
    CopyOffer offer;
    offer.input_layout = layout;
    offer.output_layout = layout;
    offer.inputs = is_split ? std::vector<Value>{whole} : values;
    offer.outputs = is_split ? values : std::vector<Value>{whole};
    for (size_t index = 0; index < laid_out.size(); ++index) {
      PortCopy port_copy = port_copy_of(laid_out[index], joint, axis, is_split);
      (is_split ? port_copy.output : port_copy.input) = ports[index];
      offer.port_copies.push_back(port_copy);
    }
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
