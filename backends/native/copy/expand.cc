// Expand and Tile: copies that repeat elements.
#include "base/families.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

void describe_expand(const CopyPorts& ports, const AddCopy& add) {
  const StorageAxes from = ports.input(0);
  const StorageAxes to = ports.output(0);
  const size_t added = to.count - from.count;
  PortCopy port_copy;
  for (size_t axis = 0; axis < to.count; ++axis) {
    const bool is_repeated = axis < added || from[axis - added].dim == 1;
    port_copy.nest.add(to[axis].dim, is_repeated ? 0 : from[axis - added].stride, to[axis].stride);
  }
  add(port_copy);
}

void describe_tile(const CopyPorts& ports, const AddCopy& add) {
  const StorageAxes from = ports.input(0);
  const StorageAxes to = ports.output(0);
  PortCopy port_copy;
  for (size_t axis = 0; axis < to.count; ++axis) {
    const int64_t dim = from[axis].dim;
    port_copy.nest.add(dim == 0 ? 0 : to[axis].dim / dim, 0, dim * to[axis].stride);
    port_copy.nest.add(dim, from[axis].stride, to[axis].stride);
  }
  add(port_copy);
}

// The shape of the output says how often elements are repeated.
void offer_repeats(ProposeContext& context, const Node& node, const DescribeCopies& describe) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  offer_copies(context, node,
               {.inputs = {node.input(0)}, .outputs = {node.output(0)}, .describe = describe});
}

}  // namespace

void propose_expands(ProposeContext& context) {
  context.for_each({"Expand"},
                   [&](const Node& node) { offer_repeats(context, node, describe_expand); });
  context.for_each({"Tile"},
                   [&](const Node& node) { offer_repeats(context, node, describe_tile); });
}

}  // namespace tessera::native
