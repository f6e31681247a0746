#include "backend/node_kernel.h"

#include <memory>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "backend/layouts.h"
#include "base/containers/small_vector.h"
#include "base/errors/check.h"
#include "base/threads/parallel.h"
#include "ops/evaluate.h"
#include "tessera/error.h"

namespace tessera {
namespace {

struct ReferenceKernel {
  Node node;
  const ops::Op* op = nullptr;
  std::shared_ptr<const void> prepared;
};

ops::TensorView view_of(const tessera_buffer& buffer) {
  if (buffer.data == nullptr) return {};
  const std::span dims(buffer.dims, static_cast<size_t>(buffer.rank));
  return {static_cast<DataType>(buffer.data_type), dims, buffer.data, element_count(dims)};
}

Tensor tensor_over(const tessera_buffer& buffer) {
  if (buffer.data == nullptr) return {};
  return {static_cast<DataType>(buffer.data_type),
          std::vector<int64_t>(buffer.dims, buffer.dims + buffer.rank), nullptr, buffer.data};
}

// The types of all outputs for these inputs.
std::vector<TensorType> output_types(const ReferenceKernel& kernel, const tessera_buffer* inputs) {
  std::vector<Tensor> tensors;
  std::vector<ops::InferInput> known;
  tensors.reserve(kernel.node.inputs.size());
  for (size_t index = 0; index < kernel.node.inputs.size(); ++index) {
    known.push_back(ops::infer_input(tensors.emplace_back(tensor_over(inputs[index]))));
  }
  std::vector<TensorType> types;
  for (const ops::InferOutput& output : ops::infer(*kernel.op, kernel.node, std::move(known))) {
    types.push_back(known_type(output.type).value_or(TensorType{}));
  }
  return types;
}

// `pool` and `scratch` are those of the context.
void run(const ReferenceKernel& kernel, tessera_run_context* context, ThreadPool& pool,
         std::pmr::memory_resource& scratch, const tessera_buffer* inputs,
         const tessera_buffer* outputs) {
  const Node& node = kernel.node;
  SmallVector<ops::TensorView> all_from(node.inputs.size(), &scratch);
  const std::span<ops::TensorView> from = all_from.values();
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    from[index] = view_of(inputs[index]);
  }
  std::vector<TensorType> types;  // filled if an output's size was not known before
  SmallVector<ops::MutableTensorView> all_to(node.outputs.size(), &scratch);
  const std::span<ops::MutableTensorView> to = all_to.values();
  int32_t port = -1;  // index among the present outputs
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index].is_none()) continue;
    ++port;
    if (outputs[index].data != nullptr) {
      const ops::TensorView view = view_of(outputs[index]);
      to[index] = {view.type, view.dims, outputs[index].data, view.elements};
      continue;
    }
    if (types.empty()) types = output_types(kernel, inputs);
    const TensorType& type = types[index];
    TESSERA_CHECK(type.element != DataType::Undefined, "known inputs make every type known");
    void* memory = context->allocate_output(context, port, static_cast<int32_t>(type.dims.size()),
                                            type.dims.data());
    if (memory == nullptr) {
      throw Error(ErrorKind::OutOfMemory, location_of(node),
                  "no memory for an output of " +
                      std::to_string(tensor_bytes(type.element, type.dims)) + " bytes");
    }
    to[index] = {type.element, type.dims, memory, element_count(type.dims)};
  }
  kernel.op->kernel({node, from, to, pool, scratch, kernel.prepared.get()});
}

// A device of a plug-in may run the kernel on a thread of its own after the call for which the host
// made a context. It passes a context that it made itself, which has no host_state.
void run(const ReferenceKernel& kernel, tessera_run_context* context, const tessera_buffer* inputs,
         const tessera_buffer* outputs) {
  if (context->host_state != nullptr) {
    return run(kernel, context, RunContext::pool_of(context), RunContext::scratch_of(context),
               inputs, outputs);
  }
  ThreadPool serial(1);
  run(kernel, context, serial, *std::pmr::get_default_resource(), inputs, outputs);
}

}  // namespace

tessera_kernel make_reference_kernel(const tessera_graph& graph, NodeId node) {
  const ops::Op& op = graph.registry.of(graph.graph[node]);
  if (ops::runs_on_values(op, graph.graph, graph.graph[node])) {
    tessera_kernel kernel = {};
    kernel.struct_size = sizeof(kernel);
    kernel.run = [](void*, tessera_run_context*, const tessera_buffer*, const tessera_buffer*,
                    tessera_error* error) {
      return report(error, TESSERA_INTERNAL, "the engine runs this node itself");
    };
    kernel.release = [](void*) {};
    return kernel;
  }
  if (op.kernel == nullptr) {
    throw Error(ErrorKind::Unsupported, location_of(graph.graph[node]),
                "the op has no reference kernel");
  }
  tessera_kernel kernel = {};
  kernel.struct_size = sizeof(kernel);
  kernel.self = new ReferenceKernel{graph.graph[node], &op,
                                    ops::prepare_node(op, graph.graph, graph.graph[node])};
  kernel.run = [](void* self, tessera_run_context* context, const tessera_buffer* inputs,
                  const tessera_buffer* outputs, tessera_error* error) {
    return serve_plugin(
        error, [&] { run(*static_cast<const ReferenceKernel*>(self), context, inputs, outputs); });
  };
  kernel.release = [](void* self) { delete static_cast<ReferenceKernel*>(self); };
  return kernel;
}

}  // namespace tessera
