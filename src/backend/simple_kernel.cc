#include "backend/node_kernel.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/contract/attribute_view.h"
#include "backend/contract/status.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr int kLeftOut = -1;

// The attributes that a kernel must ask for when it runs, on any thread.
class PendingReads {
 public:
  explicit PendingReads(const std::vector<std::string>& names)
      : names_(names), is_read_(names.size()), is_over_(names.empty()) {}

  void note(const char* name) const {
    if (is_over_ || name == nullptr) return;
    const auto found = std::ranges::find(names_, std::string_view(name));
    if (found != names_.end()) is_read_[static_cast<size_t>(found - names_.begin())] = true;
  }
  // Call it after a run that computed elements. The first attribute without a read; nullptr if
  // there is none.
  const std::string* find_unread() const {
    if (is_over_) return nullptr;
    const auto found = std::ranges::find_if(is_read_, [](const auto& is) { return !is.load(); });
    if (found != is_read_.end()) return &names_[static_cast<size_t>(found - is_read_.begin())];
    is_over_ = true;
    return nullptr;
  }

 private:
  std::vector<std::string> names_;
  mutable std::vector<std::atomic<bool>> is_read_;
  mutable std::atomic<bool> is_over_;
};

struct NodeKernel {
  NodeKernel(const tessera_simple_kernel& table, const Node& node,
             const std::vector<std::string>& unread)
      : simple(table), attributes(node.attributes), location(location_of(node)), reads(unread) {
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
      const NodeKernel& self = *static_cast<const NodeKernel*>(abi->host_state);
      self.reads.note(name);
      return self.attributes.find(name);
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

  // A kernel that computed without a part of the node has computed something else.
  void require_reads(const std::vector<tessera_buffer>& written) const {
    const bool has_elements = std::ranges::any_of(written, [](const tessera_buffer& output) {
      return output.data != nullptr && output.bytes > 0;
    });
    const std::string* unread = has_elements ? reads.find_unread() : nullptr;
    if (unread == nullptr) return;
    throw Error(ErrorKind::Unsupported, location,
                "the kernel ignores attribute '" + *unread +
                    "'; exclude its backend, or let its predicate refuse the node");
  }

  const tessera_simple_kernel& simple;
  AttributeViews attributes;
  std::string location;
  PendingReads reads;
  std::vector<int> inputs;   // port of each input of the node
  std::vector<int> outputs;  // port of each output
  tessera_node_context context = {};
};

}  // namespace

tessera_kernel make_kernel(const tessera_simple_kernel& simple, const Node& node,
                           const std::vector<std::string>& unread) {
  tessera_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.self = new NodeKernel(simple, node, unread);
  kernel.run = [](void* self, tessera_run_context* context, const tessera_buffer* inputs,
                  const tessera_buffer* outputs, tessera_error* error) -> int32_t {
    const NodeKernel& held = *static_cast<NodeKernel*>(self);
    int32_t status = TESSERA_OK;
    const int32_t served = serve_plugin(error, [&] {
      const std::vector<tessera_buffer> from = NodeKernel::spread(held.inputs, inputs);
      const std::vector<tessera_buffer> to = NodeKernel::spread(held.outputs, outputs);
      status =
          held.simple.run(held.simple.self, &held.context, context, from.data(), to.data(), error);
      if (status == TESSERA_OK) held.require_reads(to);
    });
    return served == TESSERA_OK ? status : served;
  };
  kernel.release = [](void* self) { delete static_cast<NodeKernel*>(self); };
  return kernel;
}

}  // namespace tessera
