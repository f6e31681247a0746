// Transpose, in row-major order and between row-major and channels-last, in which it often is a
// plain copy.
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Node;
using plugin::ProposeContext;

namespace {

PortCopy transposed(const std::vector<int64_t>& order, const CopyPorts& ports) {
  const StorageAxes from = ports.input(0);
  const StorageAxes to = ports.output(0);
  PortCopy port_copy;
  for (size_t axis = 0; axis < order.size(); ++axis) {
    const auto source = static_cast<size_t>(order[axis]);
    port_copy.nest.add(to[axis].dim, from[source].stride, to[axis].stride);
  }
  return port_copy;
}

void offer_transpose(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type from = node.input(0).type();
  const std::vector<int64_t> order = plugin::transpose_order(node);
  std::vector<std::pair<const char*, const char*>> layouts = {
      {TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT}};
  if (has_channels(from)) {
    layouts.emplace_back("nhwc", TESSERA_LAYOUT_DEFAULT);
    layouts.emplace_back(TESSERA_LAYOUT_DEFAULT, "nhwc");
  }
  for (const auto& [input_layout, output_layout] : layouts) {
    offer_copies(context, node,
                 {.input_layout = input_layout,
                  .output_layout = output_layout,
                  .inputs = {node.input(0)},
                  .outputs = {node.output(0)},
                  .describe = [order](const CopyPorts& ports, const AddCopy& add) {
                    add(transposed(order, ports));
                  }});
  }
}

}  // namespace

void propose_transposes(ProposeContext& context) {
  context.for_each({"Transpose"}, [&](const Node& node) { offer_transpose(context, node); });
}

}  // namespace tessera::native
