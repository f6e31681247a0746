// Conv in nhwc, as a product by packed weights: of pixels if it has one tap, else of the patches
// that the outputs read, which are copied some rows at a time (im2col). Fused with a following sum
// and activation.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "convolution/convolution_group.h"
#include "layout/feature_map.h"
#include "matmul/packed_product.h"
#include "matmul/strassen.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::WindowAxis;

namespace {

// The computation of a kernel; ports are indices of inputs.
struct PackedWork {
  PackedProduct product;
  ConvolutionSizes sizes;
  PaddingRule padding = PaddingRule::Fixed;
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
  void set_sizes(const ConvolutionSizes& other) {
    sizes = other;
    product.rows = sizes.images * sizes.out_rows * sizes.out_columns;
    set_window(sizes, padding, product.gathered.rows, product.gathered.columns);
  }
};

class PackedKernel : public plugin::Kernel {
 public:
  PackedKernel(const PackedWork& work, int64_t threads) : work_(work), threads_(threads) {}

  int64_t workspace_bytes() const override { return work_.workspace_bytes(threads_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    with_sizes_of(inputs[0], outputs[0], work_,
                  [&](const PackedWork& work) { run_work(context, work, inputs, outputs); });
  }

 private:
  void run_work(RunContext& context, const PackedWork& work, std::span<const Buffer> inputs,
                std::span<const Buffer> outputs) const {
    const float* left = inputs[0].as<const float>();
    const float* right = inputs[1].as<const float>();
    float* to = outputs[0].as<float>();
    const float* bias = work.bias ? inputs[*work.bias].as<const float>() : nullptr;
    const float* addend = work.addend ? inputs[*work.addend].as<const float>() : nullptr;
    if (work.has_strassen) {
      return run_strassen(context, work.strassen(), threads_,
                          {left, right, to, bias, addend, work.activation}, context.workspace());
    }
    PackedOperands operands = {.left = left, .right = right, .to = to};
    operands.epilogue = {.bias = bias,
                         .addend = addend,
                         .addend_row_stride = work.product.columns,
                         .addend_column_stride = 1,
                         .activation = work.activation};
    run_packed_product(context, work.product, threads_, operands, context.workspace());
  }

  PackedWork work_;
  int64_t threads_;
};

// --- Offering ------------------------------------------------------------------------------------

// Whether Winograd's algorithm computes it with fewer operations.
bool is_for_winograd(const ConvolutionShape& shape) {
  const auto is_for = [](const WindowAxis& axis) {
    return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
  };
  return is_for(shape.rows) && is_for(shape.columns) && shape.in_channels % 16 == 0 &&
         shape.out_channels % 16 == 0;
}

PackedWork work_of(const ConvolutionGroup& group) {
  const ConvolutionShape shape = shape_of(group.node);
  if (shape.groups != 1) refuse("is offered for convolutions with group = 1 only");
  const PatchRows patches = {shape.rows, shape.columns, shape.in_channels};
  if (is_for_winograd(shape)) {
    refuse("leaves these taps to Winograd's algorithm");
  }
  bool is_plain = true;
  for (const WindowAxis& axis : {patches.rows, patches.columns}) {
    is_plain &= axis.kernel == 1 && axis.stride == 1 && axis.input == axis.output;
  }
  PackedWork work = {.product = {.columns = shape.out_channels,
                                 .depth = patches.length(),
                                 .left_row_stride = shape.in_channels,
                                 .is_gathered = !is_plain,
                                 .gathered = patches},
                     .padding = shape.padding,
                     .activation = group.activation};
  work.set_sizes(shape.sizes());
  return work;
}

void offer_work(ProposeContext& context, const ConvolutionGroup& group, PackedWork work) {
  const Node& node = group.node;
  const PatchRows& patches = work.product.gathered;
  const int64_t taps = patches.rows.kernel * patches.columns.kernel;
  const PanelSource source = {.depth = work.product.depth,
                              .columns = work.product.columns,
                              .depth_stride = taps,
                              .column_stride = work.product.depth,
                              .parts = taps};
  const char* nhwc = layout_name(ChannelLayout::Nhwc);
  GroupCandidate made = candidate_of(
      group, work.has_strassen ? "strassen" : "packed", nhwc, nhwc,
      work.has_strassen ? strassen_pack(source) : panels_pack(source), Addend::Overwritten);
  work.bias = made.bias;
  work.addend = made.addend;
  Candidate& candidate = made.candidate;
  // Each of the rows and columns that are added may have a NaN.
  if (work.has_strassen) candidate.flags = TESSERA_CANDIDATE_SPREADS_NAN;
  candidate.workspace_bytes = work.workspace_bytes(context.options().threads);
  candidate.workspace_for = workspace_for(work, context.options().threads);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.input(1).type().dense_bytes() +
                          node.output(0).type().dense_bytes());
  const double flops = work.product.flops() * (work.has_strassen ? 7.0 / 8 : 1);
  candidate.optimistic_seconds = context.optimistic_seconds(flops, bytes);
  candidate.build = [work](const plugin::BuildOptions& options) {
    return std::make_unique<PackedKernel>(work, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace

void offer_packed(ProposeContext& context, const ConvolutionGroup& group) {
  PackedWork work = work_of(group);
  offer_work(context, group, work);
  if (work.product.is_gathered || group.activation.is_gated()) return;
  if (!admits_strassen(context, work.strassen())) return;
  work.has_strassen = true;
  offer_work(context, group, work);
}

}  // namespace tessera::native
