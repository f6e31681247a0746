// The Reduce family and the global poolings. Reductions over all pixels or over channels are also
// proposed in the layouts with channels, whose elements are in another order.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/families.h"
#include "layout/feature_map.h"
#include "reduce/generic_reduction.h"
#include "reduce/reduction.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

class ReductionKernel : public plugin::Kernel {
 public:
  explicit ReductionKernel(Reduction reduction) : reduction_(std::move(reduction)) {}

  int64_t workspace_bytes() const override { return reduction_.workspace_bytes(); }
  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    reduction_.run(context, inputs[0].as<const float>(), outputs[0].as<float>());
  }

 private:
  Reduction reduction_;
};

class ReductionOffer {
 public:
  ReductionOffer(ProposeContext& context, const Node& node, ReductionKind kind,
                 std::vector<bool> is_reduced)
      : context_(context),
        node_(node),
        kind_(kind),
        is_reduced_(std::move(is_reduced)),
        dims_(node.input(0).type().dims) {}

  void offer() {
    for (const ChannelLayout layout : kChannelLayouts) offer_layout(layout);
    std::vector<ReducedAxis> axes;
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      axes.push_back({dims_[axis], is_reduced_[axis]});
    }
    add(axes, TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT);
  }

 private:
  // Offers reductions over all pixels, or over channels, and no other axis.
  void offer_layout(ChannelLayout layout) {
    if (!differs_from_row_major(layout, dims_) || node_.input(0).type().elements() == 0) return;
    const bool is_pixels = is_reduced_[2];
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      const bool is_expected = axis == 0 ? false : (axis == 1) != is_pixels;
      if (is_reduced_[axis] != is_expected) return;
    }
    const FeatureMap map = feature_map_of(layout, dims_);
    // Padding must not be reduced, and must stay zero.
    if (map.is_padded() && (!is_pixels || kind_.finish == Finish::Logarithm)) return;
    const std::string result = result_layout(layout, is_pixels);
    if (result.empty()) return;
    add({{map.images, false},
         {map.blocks, !is_pixels},
         {map.pixels, is_pixels},
         {map.lanes, !is_pixels}},
        layout_name(layout), result);
  }

  // "" if the result is in no layout that has a name.
  std::string result_layout(ChannelLayout layout, bool is_pixels) const {
    const std::vector<int64_t> result = node_.output(0).type().dims;
    if (result.size() == dims_.size()) {
      return is_pixels && differs_from_row_major(layout, result) ? layout_name(layout)
                                                                 : TESSERA_LAYOUT_DEFAULT;
    }
    const bool is_padded = feature_map_of(layout, dims_).is_padded();
    return is_padded ? "" : TESSERA_LAYOUT_DEFAULT;
  }

  void add(const std::vector<ReducedAxis>& axes, const std::string& from, const std::string& to) {
    Candidate candidate = one_input_candidate(node_, from, to);
    candidate.algorithm = axes.empty() || axes.back().is_reduced ? "rows" : "columns";
    const auto elements = static_cast<double>(node_.input(0).type().elements());
    candidate.optimistic_seconds = context_.optimistic_seconds(elements, elements * sizeof(float));
    candidate.workspace_bytes =
        Reduction(kind_, axes, context_.options().threads).workspace_bytes();
    candidate.build = [kind = kind_, axes](const plugin::BuildOptions& options) {
      return std::make_unique<ReductionKernel>(Reduction(kind, axes, options.threads));
    };
    context_.add(std::move(candidate));
  }

  // The input of axes is not read, because its elements are known.
  static Candidate one_input_candidate(const Node& node, const std::string& from,
                                       const std::string& to) {
    Candidate candidate;
    candidate.nodes = {node.id()};
    candidate.inputs.push_back({.value = node.input(0).id(), .layout = from});
    candidate.outputs.push_back({.value = node.output(0).id(), .layout = to});
    return candidate;
  }

  ProposeContext& context_;
  Node node_;
  ReductionKind kind_;
  std::vector<bool> is_reduced_;
  std::vector<int64_t> dims_;
};

void offer_generic(ProposeContext& context, const Node& node, const std::vector<bool>& is_reduced) {
  const plugin::Type type = node.input(0).type();
  const GenericReduction reduction = find_generic_reduction(node.op(), type.data_type);
  if (reduction == nullptr) {
    throw Failure(TESSERA_UNSUPPORTED, "has no such reduction of elements of this type");
  }
  std::vector<ReducedAxis> axes;
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    axes.push_back({type.dims[axis], is_reduced[axis]});
  }
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.inputs.push_back({.value = node.input(0).id()});
  candidate.outputs.push_back({.value = node.output(0).id()});
  candidate.algorithm = "plain";
  candidate.optimistic_seconds = context.optimistic_seconds(
      static_cast<double>(type.elements()), static_cast<double>(type.dense_bytes()));
  candidate.build = [axes, reduction](const plugin::BuildOptions&) {
    return plugin::make_kernel([axes, reduction](RunContext& run, std::span<const Buffer> inputs,
                                                 std::span<const Buffer> outputs) {
      reduction(run, axes, inputs[0].data, outputs[0].data);
    });
  };
  context.add(std::move(candidate));
}

void offer_reduction(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (!type.is_known()) throw Failure(TESSERA_UNSUPPORTED, "takes tensors of known shape only");
  std::vector<bool> is_reduced = plugin::reduced_axes(node, type.dims.size());
  if (type.data_type != TESSERA_FLOAT32) return offer_generic(context, node, is_reduced);
  ReductionOffer(context, node, reduction_kind(node.op()), std::move(is_reduced)).offer();
}

void offer_global_pool(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
  }
  const bool is_max = node.op() == "GlobalMaxPool";
  const ReductionKind kind = {is_max ? ReduceOp::Max : ReduceOp::Sum,
                              is_max ? Finish::AsIs : Finish::Mean};
  std::vector<bool> is_reduced(type.dims.size(), true);
  std::fill_n(is_reduced.begin(), 2, false);
  ReductionOffer(context, node, kind, std::move(is_reduced)).offer();
}

}  // namespace

void propose_reductions(ProposeContext& context) {
  context.for_each({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"},
                   [&](const Node& node) { offer_reduction(context, node); });
  context.for_each({"GlobalAveragePool", "GlobalMaxPool"},
                   [&](const Node& node) { offer_global_pool(context, node); });
}

}  // namespace tessera::native
