// The Reduce family and the global poolings. Reductions over all pixels or over channels are also
// proposed in the layouts with channels, whose elements are in another order.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
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

struct ReductionProblem {
  ReductionKind kind;
  std::optional<ChannelLayout> layout;  // nullopt: row-major
  std::vector<bool> is_reduced;         // by axis; in a layout: all pixels, or the channels

  // The axes of a tensor of these sizes, in the order of memory.
  ReducedAxes axes_of(std::span<const int64_t> dims) const {
    ReducedAxes axes;
    if (layout) {
      const FeatureMap map = feature_map_of(*layout, dims);
      axes.add(map.images, false);
      axes.add(map.blocks, is_reduced[1]);
      axes.add(map.pixels, is_reduced[2]);
      axes.add(map.lanes, is_reduced[1]);
    } else {
      for (size_t axis = 0; axis < dims.size(); ++axis) axes.add(dims[axis], is_reduced[axis]);
    }
    return axes;
  }
  bool has_reduced_rows() const {
    if (layout) return is_reduced[1];
    return is_reduced.empty() || is_reduced.back();
  }
};

// The reduction of the sizes for which it was proposed is kept.
class ReductionKernel : public plugin::Kernel {
 public:
  ReductionKernel(ReductionProblem problem, std::vector<int64_t> dims, int32_t threads)
      : problem_(std::move(problem)),
        dims_(std::move(dims)),
        planned_(problem_.kind, problem_.axes_of(dims_), threads),
        threads_(threads_for_others(planned_, threads)) {}

  // The threads that a reduction of other sizes than those of `planned` may use. Without a
  // workspace they cannot share results.
  static int32_t threads_for_others(const Reduction& planned, int32_t threads) {
    return planned.shares_results() ? threads : 1;
  }

  int64_t workspace_bytes() const override { return planned_.workspace_bytes(); }
  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const std::span<const int64_t> dims = inputs[0].sizes();
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    if (std::ranges::equal(dims, dims_)) return planned_.run(context, from, to);
    Reduction(problem_.kind, problem_.axes_of(dims), threads_).run(context, from, to);
  }

 private:
  ReductionProblem problem_;
  std::vector<int64_t> dims_;
  Reduction planned_;
  int32_t threads_;  // for other sizes
};

// Which dimensions of the input a reduction in this layout is built for. The input of axes has no
// port, so nothing is known about other sizes if it is no constant.
std::optional<std::vector<tessera_built_for>> built_for(
    const Node& node, const std::optional<ChannelLayout>& layout) {
  if (node.input(1).is_present() && !node.input(1).is_constant()) return std::nullopt;
  std::vector<tessera_built_for> dimensions;
  // Padding, and the layout of the result, depend on the number of channels.
  if (layout) dimensions.push_back(kBuiltForChannels);
  return dimensions;
}

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
    add(std::nullopt, TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT);
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
    add(layout, layout_name(layout), result);
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

  void add(const std::optional<ChannelLayout>& layout, const std::string& from,
           const std::string& to) {
    const ReductionProblem problem = {.kind = kind_, .layout = layout, .is_reduced = is_reduced_};
    Candidate candidate = one_input_candidate(node_, from, to);
    candidate.algorithm = problem.has_reduced_rows() ? "rows" : "columns";
    candidate.built_for = built_for(node_, layout);
    const auto elements = static_cast<double>(node_.input(0).type().elements());
    candidate.optimistic_seconds = context_.optimistic_seconds(elements, elements * sizeof(float));
    const Reduction planned(kind_, problem.axes_of(dims_), context_.options().threads);
    candidate.workspace_bytes = planned.workspace_bytes();
    candidate.workspace_for = [problem, threads = ReductionKernel::threads_for_others(
                                            planned, context_.options().threads)](
                                  std::span<const Buffer> inputs, std::span<const Buffer>) {
      return Reduction(problem.kind, problem.axes_of(inputs[0].sizes()), threads).workspace_bytes();
    };
    candidate.build = [problem, dims = dims_](const plugin::BuildOptions& options) {
      return std::make_unique<ReductionKernel>(problem, dims, options.threads);
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
  // Axes that cannot be reduced are refused here, not in a run.
  const ReductionProblem problem = {.kind = {}, .layout = std::nullopt, .is_reduced = is_reduced};
  problem.axes_of(type.dims);
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.inputs.push_back({.value = node.input(0).id()});
  candidate.outputs.push_back({.value = node.output(0).id()});
  candidate.algorithm = "plain";
  candidate.built_for = built_for(node, std::nullopt);
  candidate.optimistic_seconds = context.optimistic_seconds(
      static_cast<double>(type.elements()), static_cast<double>(type.dense_bytes()));
  candidate.build = [problem, reduction](const plugin::BuildOptions&) {
    return plugin::make_kernel([problem, reduction](RunContext& run, std::span<const Buffer> inputs,
                                                    std::span<const Buffer> outputs) {
      reduction(run, problem.axes_of(inputs[0].sizes()), inputs[0].data, outputs[0].data);
    });
  };
  accept_any_address(context.graph(), candidate);
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
