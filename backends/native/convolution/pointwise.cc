// Conv with one tap in nhwc, as a product of pixels by packed weights, fused with a following sum
// and activation.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/window.h"
#include "convolution/convolution_group.h"
#include "layout/feature_map.h"
#include "matmul/packed_product.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;
using plugin::WindowAxis;

namespace {

[[noreturn]] void refuse(const std::string& reason) { throw Failure(TESSERA_UNSUPPORTED, reason); }

// What a kernel computes; ports are indices of inputs.
struct Work {
  PackedProduct product;
  std::optional<size_t> bias;
  std::optional<size_t> addend;
  Activation activation;
};

class PointwiseKernel : public plugin::Kernel {
 public:
  PointwiseKernel(const Work& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override {
    return packed_product_workspace_bytes(work_.product, threads_);
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    PackedOperands operands = {.left = inputs[0].as<const float>(),
                               .right = inputs[1].as<const float>(),
                               .to = outputs[0].as<float>()};
    operands.epilogue = {.bias = work_.bias ? inputs[*work_.bias].as<const float>() : nullptr,
                         .addend = work_.addend ? inputs[*work_.addend].as<const float>() : nullptr,
                         .addend_row_stride = work_.product.columns,
                         .addend_column_stride = 1,
                         .activation = work_.activation};
    run_packed_product(context, work_.product, threads_, operands, context.workspace());
  }

 private:
  Work work_;
  int64_t threads_;
};

// --- Offering ------------------------------------------------------------------------------------

PackedProduct product_of(const Node& node) {
  check_convolution_types(node);
  const std::vector<int64_t> input = node.input(0).type().dims;
  const std::vector<int64_t> weights = node.input(1).type().dims;
  const std::vector<int64_t> output = node.output(0).type().dims;
  if (input.size() != 4 || node.attributes().get_int("group", 1) != 1) {
    refuse("is offered for 2-D convolutions with group = 1 only");
  }
  const Window window =
      window_of(node.attributes(), {weights.begin() + 2, weights.end()}, input, output);
  const WindowAxis& rows = window[1];
  const WindowAxis& columns = window[2];
  for (const WindowAxis& axis : {rows, columns}) {
    const bool is_inside = axis.pad_begin == 0 && (axis.output - 1) * axis.stride < axis.input;
    if (axis.kernel != 1 || !is_inside) refuse("is offered for one tap without padding only");
  }
  PackedProduct product = {.rows = output[0] * output[2] * output[3],
                           .columns = weights[0],
                           .depth = weights[1],
                           .left_row_stride = weights[1]};
  product.is_gathered = rows.stride != 1 || columns.stride != 1;
  product.gathered = {.rows_of_line = columns.output,
                      .lines_of_image = rows.output,
                      .row_stride = columns.stride * product.depth,
                      .line_stride = rows.stride * columns.input * product.depth,
                      .image_stride = rows.input * columns.input * product.depth};
  return product;
}

}  // namespace

void offer_pointwise(ProposeContext& context, const ConvolutionGroup& group) {
  const Node& node = group.node;
  Work work = {.product = product_of(node), .activation = group.activation};
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = "packed";
  add_input(candidate, node.input(0).id(), nhwc);
  const size_t weights = add_input(candidate, node.input(1).id(), TESSERA_LAYOUT_DEFAULT);
  candidate.inputs[weights].pack = panels_pack({.depth = work.product.depth,
                                                .columns = work.product.columns,
                                                .depth_stride = 1,
                                                .column_stride = work.product.depth});
  if (node.input(2).is_present()) {
    work.bias = add_input(candidate, node.input(2).id(), TESSERA_LAYOUT_DEFAULT);
  }
  candidate.outputs.push_back({.value = group.result, .layout = nhwc});
  if (group.addend >= 0) work.addend = add_addend(candidate, group, nhwc);
  candidate.workspace_bytes =
      packed_product_workspace_bytes(work.product, context.options().threads);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(work.product.flops(), bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<PointwiseKernel>(work, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace tessera::native
