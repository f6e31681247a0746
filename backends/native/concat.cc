// Concat and Split, in each layout in which the parts end where blocks of channels do.
#include <string>
#include <vector>

#include "families.h"
#include "move.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

constexpr int32_t kFirstRequiredAxisVersion = 4;

// A part of a larger tensor, or the whole of it as one part.
struct Part {
  Arrangement arrangement;
  int64_t start = 0;  // along the axis, in its steps
};

// The parts along `axis` in this layout; empty where one does not end with its block.
std::vector<Part> parts_in(const std::string& layout, const std::vector<Value>& values,
                           size_t axis) {
  std::vector<Part> parts;
  int64_t start = 0;  // in channels where axis is 1
  for (const Value& value : values) {
    const std::vector<int64_t> dims = value.type().dims;
    Part part{arrange(layout, dims)};
    const int64_t block = axis == 1 ? part.arrangement.block : 1;
    if (start % block != 0) return {};
    part.start = start / block;
    start += dims[axis];
    parts.push_back(std::move(part));
  }
  return parts;
}

// What a part is of: from there (Split) or to there (Concat).
Move move_of(const Part& part, const Arrangement& whole, size_t axis, bool is_split) {
  Move move;
  move.strides = is_split ? whole.strides : part.arrangement.strides;
  const Arrangement& target = is_split ? part.arrangement : whole;
  for (size_t place = 0; place < part.arrangement.dims.size(); ++place) {
    move.axes.push_back({.count = part.arrangement.dims[place],
                         .input_axis = static_cast<int>(place),
                         .to = target.strides[place]});
  }
  if (is_split) {
    move.starts.assign(whole.dims.size(), 0);
    move.starts[axis] = part.start;
  } else {
    move.to_offset = part.start * whole.strides[axis];
  }
  return move;
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
    const std::vector<Part> arranged = parts_in(layout, parts, axis);
    if (arranged.empty()) continue;
    const Arrangement joint = arrange(layout, whole.type().dims);
    MoveOffer offer;
    offer.input_layout = layout;
    offer.output_layout = layout;
    offer.inputs = is_split ? std::vector<Value>{whole} : values;
    offer.outputs = is_split ? values : std::vector<Value>{whole};
    for (size_t index = 0; index < arranged.size(); ++index) {
      Move move = move_of(arranged[index], joint, axis, is_split);
      (is_split ? move.output : move.input) = ports[index];
      offer.moves.push_back(move);
    }
    offer_moves(context, node, offer);
  }
}

void offer_concat(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  std::vector<Value> parts;
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (const auto reason = explain_immovable(node.input(index))) {
      return context.refuse(node.id(), *reason);
    }
    parts.push_back(node.input(index));
  }
  const int64_t otherwise = node.version() < kFirstRequiredAxisVersion ? 1 : 0;
  const size_t axis = normalized_axis(node.attributes().get_int("axis", otherwise),
                                      node.output(0).type().dims.size());
  offer_joint(context, node, parts, node.output(0), axis, false);
}

// Where the parts lie is told by their own sizes.
void offer_split(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_immovable(node)) return context.refuse(node.id(), *reason);
  std::vector<Value> parts;
  for (size_t index = 0; index < node.output_count(); ++index) parts.push_back(node.output(index));
  const size_t axis =
      normalized_axis(node.attributes().get_int("axis"), node.input(0).type().dims.size());
  offer_joint(context, node, parts, node.input(0), axis, true);
}

}  // namespace

void propose_concats(ProposeContext& context) {
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat(context, node); });
  context.for_each({"Split"}, [&](const Node& node) { offer_split(context, node); });
}

}  // namespace tessera::native
