#include "backend/simple_kernel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/attribute_view.h"
#include "backend/status.h"

namespace tessera {
namespace {

constexpr int kLeftOut = -1;

struct NodeKernel {
  NodeKernel(const tessera_simple_kernel& table, const Node& node)
      : simple(table), attributes(node.attributes) {
    std::vector<ValueId> ports;
    for (const ValueId id : node.inputs) {
      const auto found = std::find(ports.begin(), ports.end(), id);
      inputs.push_back(id.is_none() ? kLeftOut : static_cast<int>(found - ports.begin()));
      if (!id.is_none() && found == ports.end()) ports.push_back(id);
    }
    int output_ports = 0;
    for (const ValueId id : node.outputs) {
      outputs.push_back(id.is_none() ? kLeftOut : output_ports++);
    }
    context.struct_size = sizeof(context);
    context.input_count = static_cast<int32_t>(inputs.size());
    context.output_count = static_cast<int32_t>(outputs.size());
    context.host_state = this;
    context.attribute = [](const tessera_node_context* abi, const char* name) {
      return static_cast<const NodeKernel*>(abi->host_state)->attributes.find(name);
    };
  }

  // The node's buffers, selected from those of the ports.
  static std::vector<tessera_buffer> spread(const std::vector<int>& ports,
                                            const tessera_buffer* buffers) {
    std::vector<tessera_buffer> result;
    result.reserve(ports.size());
    for (const int port : ports) {
      result.push_back(port == kLeftOut ? tessera_buffer{} : buffers[port]);
    }
    return result;
  }

  const tessera_simple_kernel& simple;
  AttributeViews attributes;
  std::vector<int> inputs;   // port of each input of the node
  std::vector<int> outputs;  // port of each output
  tessera_node_context context = {};
};

}  // namespace

tessera_kernel make_kernel(const tessera_simple_kernel& simple, const Node& node) {
  tessera_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.self = new NodeKernel(simple, node);
  kernel.run = [](void* self, tessera_run_context* context, const tessera_buffer* inputs,
                  const tessera_buffer* outputs, tessera_error* error) -> int32_t {
    const NodeKernel& held = *static_cast<NodeKernel*>(self);
    int32_t status = TESSERA_OK;
    const int32_t served = serve_plugin(error, [&] {
      const std::vector<tessera_buffer> from = NodeKernel::spread(held.inputs, inputs);
      const std::vector<tessera_buffer> to = NodeKernel::spread(held.outputs, outputs);
      status =
          held.simple.run(held.simple.self, &held.context, context, from.data(), to.data(), error);
    });
    return served == TESSERA_OK ? status : served;
  };
  kernel.release = [](void* self) { delete static_cast<NodeKernel*>(self); };
  return kernel;
}

}  // namespace tessera
