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
#include "matmul/strassen.h"
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
  bool has_strassen = false;

  StrassenProduct strassen() const {
    return {product.rows, product.columns, product.depth, product.left_row_stride};
  }
  int64_t workspace_bytes(int64_t threads) const {
    return has_strassen ? strassen_workspace_bytes(strassen())
                        : packed_product_workspace_bytes(product, threads);
  }
};

class PointwiseKernel : public plugin::Kernel {
 public:
  PointwiseKernel(const Work& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override { return work_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* left = inputs[0].as<const float>();
    const float* right = inputs[1].as<const float>();
    float* to = outputs[0].as<float>();
    const float* bias = work_.bias ? inputs[*work_.bias].as<const float>() : nullptr;
    const float* addend = work_.addend ? inputs[*work_.addend].as<const float>() : nullptr;
    if (work_.has_strassen) {
      return run_strassen(context, work_.strassen(), threads_,
                          {left, right, to, bias, addend, work_.activation}, context.workspace());
    }
    PackedOperands operands = {.left = left, .right = right, .to = to};
    operands.epilogue = {.bias = bias,
                         .addend = addend,
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

void offer_work(ProposeContext& context, const ConvolutionGroup& group, Work work) {
  const Node& node = group.node;
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = work.has_strassen ? "strassen" : "packed";
  // Of rows and columns that are added, each may have a NaN.
  if (work.has_strassen) candidate.flags = TESSERA_CANDIDATE_SPREADS_NAN;
  add_input(candidate, node.input(0).id(), nhwc);
  const size_t weights = add_input(candidate, node.input(1).id(), TESSERA_LAYOUT_DEFAULT);
  const PanelSource source = {.depth = work.product.depth,
                              .columns = work.product.columns,
                              .depth_stride = 1,
                              .column_stride = work.product.depth};
  candidate.inputs[weights].pack = work.has_strassen ? strassen_pack(source) : panels_pack(source);
  if (node.input(2).is_present()) {
    work.bias = add_input(candidate, node.input(2).id(), TESSERA_LAYOUT_DEFAULT);
  }
  candidate.outputs.push_back({.value = group.result, .layout = nhwc});
  if (group.addend >= 0) work.addend = add_addend(candidate, group, nhwc);
  candidate.workspace_bytes = work.workspace_bytes(context.options().threads);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  const double flops = work.product.flops() * (work.has_strassen ? 7.0 / 8 : 1);
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<PointwiseKernel>(work, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void offer_pointwise(ProposeContext& context, const ConvolutionGroup& group) {
  Work work = {.product = product_of(group.node), .activation = group.activation};
  offer_work(context, group, work);
  if (work.product.is_gathered || group.activation.is_gated()) return;
  if (!is_worth_strassen(work.strassen())) return;
  work.has_strassen = true;
  offer_work(context, group, work);
}

}  // namespace tessera::native
