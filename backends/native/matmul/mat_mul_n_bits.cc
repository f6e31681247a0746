// MatMulNBits of ONNX Runtime's domain, with constant weights.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/families.h"
#include "base/microsoft_ops.h"
#include "base/refusal.h"
#include "matmul/block_product.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Indices of the kernel's inputs; -1: there is none.
struct BlockPorts {
  int32_t left = 0;
  int32_t words = 0;
  int32_t scales = 0;
  int32_t zeros = -1;
  int32_t bias = -1;
};

const void* data_of(std::span<const Buffer> inputs, int32_t port) {
  return port < 0 ? nullptr : inputs[static_cast<size_t>(port)].data;
}

int64_t rows_of_left(const BlockWeights& weights, const Buffer& left) {
  return left.elements() / weights.depth;
}

class BlockProductKernel : public plugin::Kernel {
 public:
  BlockProductKernel(const BlockWeights& weights, const BlockPorts& ports, int64_t threads,
                     int64_t workspace_bytes)
      : weights_(weights), ports_(ports), threads_(threads), workspace_bytes_(workspace_bytes) {}

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const Buffer& left = inputs[static_cast<size_t>(ports_.left)];
    run_block_product(context, weights_, rows_of_left(weights_, left), threads_,
                      {.left = left.as<const float>(),
                       .words = static_cast<const uint32_t*>(data_of(inputs, ports_.words)),
                       .scales = static_cast<const float*>(data_of(inputs, ports_.scales)),
                       .zeros = data_of(inputs, ports_.zeros),
                       .bias = static_cast<const float*>(data_of(inputs, ports_.bias)),
                       .to = outputs[0].as<float>()},
                      context.workspace());
  }

 private:
  BlockWeights weights_;
  BlockPorts ports_;
  int64_t threads_;
  int64_t workspace_bytes_;
};

BlockWeights block_weights_of(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  // Any level of accuracy: sums are float32.
  attributes.find("accuracy_level");
  if (attributes.get_int("weight_prepacked") != 0) refuse("takes weights as the op defines them");
  BlockWeights weights = {.columns = attributes.get_int("N"),
                          .depth = attributes.get_int("K"),
                          .block = attributes.get_int("block_size"),
                          .bits = attributes.get_int("bits", 4)};
  if (weights.block > kMaxBlockWeights) {
    refuse("takes blocks of at most " + std::to_string(kMaxBlockWeights) + " weights, found " +
           std::to_string(weights.block));
  }
  const Value zeros = node.input(3);
  if (zeros.is_present()) {
    const bool is_packed = zeros.type().data_type == TESSERA_UINT8;
    weights.zeros = is_packed ? BlockZeros::Bytes : BlockZeros::Numbers;
  }
  return weights;
}

void check_constant(const Value& value) {
  if (!value.is_constant() || !value.type().is_known()) refuse("takes constant weights only");
}

// The axes of constants, for which the kernel is built.
void add_built_for(Candidate& candidate, int32_t port, const Value& value) {
  if (port < 0) return;
  for (int32_t axis = 0; axis < value.type().rank; ++axis) {
    candidate.built_for->push_back({port, axis});
  }
}

void offer_block_product(ProposeContext& context, const Node& node) {
  check_usable(node.input(0));
  if (node.input(4).is_present()) refuse("takes blocks in order only, without 'g_idx'");
  for (const size_t index : {size_t{1}, size_t{2}}) check_constant(node.input(index));
  if (node.input(3).is_present()) check_constant(node.input(3));
  if (node.input(5).is_present()) check_usable(node.input(5));
  const BlockWeights weights = block_weights_of(node);
  if (node.output(0).type().elements() == 0) refuse("the product has no elements");
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "blocks";
  BlockPorts ports;
  ports.left = plugin::input_port(candidate, node.input(0));
  ports.words = plugin::input_port(candidate, node.input(1), block_words_pack(weights));
  ports.scales = plugin::input_port(candidate, node.input(2), block_scales_pack(weights));
  if (weights.zeros != BlockZeros::None) {
    ports.zeros = plugin::input_port(candidate, node.input(3), block_zeros_pack(weights));
  }
  ports.bias = plugin::input_port(candidate, node.input(5));
  plugin::output_port(candidate, node.output(0));
  candidate.built_for.emplace();
  add_built_for(candidate, ports.words, node.input(1));
  add_built_for(candidate, ports.scales, node.input(2));
  add_built_for(candidate, ports.zeros, node.input(3));
  const int64_t rows = node.input(0).type().elements() / weights.depth;
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = block_product_workspace_bytes(weights, rows, threads);
  candidate.workspace_for = [weights, ports, threads](std::span<const Buffer> inputs,
                                                      std::span<const Buffer>) {
    const Buffer& left = inputs[static_cast<size_t>(ports.left)];
    return block_product_workspace_bytes(weights, rows_of_left(weights, left), threads);
  };
  double bytes = static_cast<double>(node.output(0).type().dense_bytes());
  for (const plugin::InputPort& port : candidate.inputs) {
    bytes += static_cast<double>(context.graph().value(port.value).type().dense_bytes());
  }
  const double flops = 2 * static_cast<double>(rows) * static_cast<double>(weights.columns) *
                       static_cast<double>(weights.depth);
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.build = [weights, ports,
                     bytes = candidate.workspace_bytes](const plugin::BuildOptions& options) {
    return std::make_unique<BlockProductKernel>(weights, ports, options.threads, bytes);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_block_products(ProposeContext& context) {
  for_each_of_microsoft(context, {"MatMulNBits"},
                        [&](const Node& node) { offer_block_product(context, node); });
}

}  // namespace tessera::native
