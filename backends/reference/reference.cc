// The backend that is always there: the reference kernel of every op, one node at a time, on
// row-major buffers. The kernels themselves are the host's; see tessera_host::reference_kernel.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "tessera/backend.h"

namespace {

using tessera::plugin::Buffer;
using tessera::plugin::Candidate;
using tessera::plugin::Description;
using tessera::plugin::Failure;
using tessera::plugin::Graph;
using tessera::plugin::Kernel;
using tessera::plugin::Node;
using tessera::plugin::Proposals;
using tessera::plugin::ProposeOptions;
using tessera::plugin::RunContext;
using tessera::plugin::Value;
using tessera::plugin::Wanted;

// A tenth of what one thread can do: no library should lose to it by its own estimate.
constexpr double kFlopsPerSecond = 1e9;
constexpr double kBytesPerSecond = 1e9;

constexpr int kLeftOut = -1;

// The node's buffers, out of those of the ports; a few take no allocation.
class NodeBuffers {
 public:
  NodeBuffers(const std::vector<int>& ports, std::span<const Buffer> buffers) {
    if (ports.size() > few_.size()) many_.resize(ports.size());
    Buffer* next = many_.empty() ? few_.data() : many_.data();
    for (const int port : ports) {
      *next++ = port == kLeftOut ? Buffer{} : buffers[static_cast<size_t>(port)];
    }
  }
  const Buffer* data() const { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<Buffer, 8> few_ = {};
  std::vector<Buffer> many_;
};

// The host's kernel, which takes the node's buffers, behind ports that list each value once.
class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(std::shared_ptr<const tessera_kernel> kernel, std::vector<int> inputs,
                  std::vector<int> outputs)
      : kernel_(std::move(kernel)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const NodeBuffers from(inputs_, inputs);
    const NodeBuffers to(outputs_, outputs);
    tessera_error error;
    error.struct_size = sizeof(error);
    error.kind = TESSERA_OK;
    error.message[0] = '\0';
    const int32_t status =
        kernel_->run(kernel_->self, context.handle(), from.data(), to.data(), &error);
    if (status != TESSERA_OK) throw Failure(status, error.message);
  }

 private:
  std::shared_ptr<const tessera_kernel> kernel_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
};

// The kernels read and write element by element.
int64_t alignment_of(const Value& value) {
  return std::max<int64_t>(tessera::plugin::element_bytes(value.type().data_type), 1);
}

// Fills the ports of `candidate`, and gives for each input of the node the port that has it.
std::vector<int> add_inputs(const Node& node, Candidate& candidate) {
  std::vector<int> ports;
  std::unordered_map<int32_t, int> port_of;  // by value
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Value value = node.input(index);
    if (!value.is_present()) {
      ports.push_back(kLeftOut);
      continue;
    }
    const auto [port, is_new] = port_of.try_emplace(value.id(), static_cast<int>(port_of.size()));
    ports.push_back(port->second);
    if (!is_new) continue;
    candidate.inputs.push_back({.value = value.id(), .alignment_bytes = alignment_of(value)});
  }
  return ports;
}

std::vector<int> add_outputs(const Node& node, Candidate& candidate) {
  std::vector<int> ports;
  for (size_t index = 0; index < node.output_count(); ++index) {
    const Value value = node.output(index);
    ports.push_back(value.is_present() ? static_cast<int>(candidate.outputs.size()) : kLeftOut);
    if (!value.is_present()) continue;
    candidate.outputs.push_back({.value = value.id(),
                                 .is_size_unknown = !value.type().is_known(),
                                 .alignment_bytes = alignment_of(value)});
  }
  return ports;
}

class Reference : public tessera::plugin::Backend {
 public:
  explicit Reference(const tessera_host* host) : host_(host) {}

  Description describe() override {
    return {.name = "reference",
            .version = host_->version,
            .ingredients = {{"version", host_->version}},
            .devices = {{.kind = "cpu", .architecture = "any"}}};
  }

  void propose(const Graph& graph, const ProposeOptions& options, Proposals& proposals) override {
    if (!options.wanted) {
      for (int32_t id = 0; id < graph.node_count(); ++id) propose_node(graph, id, proposals);
      return;
    }
    for (const Wanted& wanted : *options.wanted) {
      if (wanted.nodes.size() == 1) propose_node(graph, wanted.nodes.front(), proposals);
    }
  }

 private:
  void propose_node(const Graph& graph, int32_t id, Proposals& proposals) const {
    tessera_kernel made = {};
    tessera_error error = {};
    error.struct_size = sizeof(error);
    if (host_->reference_kernel(graph.handle(), id, &made, &error) != TESSERA_OK) {
      proposals.refuse(id, error.message);
      return;
    }
    // Made right away, as the graph is gone by the time of building.
    const std::shared_ptr<const tessera_kernel> kernel(new tessera_kernel(made), [](auto* held) {
      held->release(held->self);
      delete held;
    });
    const Node node = graph.node(id);
    Candidate candidate;
    candidate.nodes = {id};
    candidate.flags = TESSERA_CANDIDATE_KNOWS_SMALL_TYPES;
    std::vector<int> inputs = add_inputs(node, candidate);
    std::vector<int> outputs = add_outputs(node, candidate);
    const double flops = static_cast<double>(std::max<int64_t>(0, node.flops()));
    const double bytes = static_cast<double>(std::max<int64_t>(0, node.bytes()));
    candidate.optimistic_seconds = flops / kFlopsPerSecond + bytes / kBytesPerSecond;
    candidate.built_for = std::vector<tessera_built_for>{};
    candidate.build = [kernel, inputs, outputs](const auto&) -> std::unique_ptr<Kernel> {
      return std::make_unique<ReferenceKernel>(kernel, inputs, outputs);
    };
    proposals.add(std::move(candidate));
  }

  const tessera_host* host_;
};

}  // namespace

TESSERA_EXPORT int32_t tessera_open_backend_reference(const tessera_host* host,
                                                      tessera_backend* backend,
                                                      tessera_error* error) {
  return tessera::plugin::open_backend<Reference>(host, backend, error);
}
