// The Reduce family and the global poolings. Reductions over pixels or channels are offered in the
// layouts of pictures too, where the numbers of one set lie side by side in another way.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "axes.h"
#include "families.h"
#include "picture.h"
#include "plain_reduction.h"
#include "reduction.h"

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
    for (const PictureLayout layout : kPictureLayouts) offer_picture(layout);
    std::vector<ReducedAxis> axes;
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      axes.push_back({dims_[axis], is_reduced_[axis]});
    }
    add(axes, TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT);
  }

 private:
  // Where either all pixels go and nothing else, or all channels.
  void offer_picture(PictureLayout layout) {
    if (!lies_as_picture(layout, dims_) || node_.input(0).type().elements() == 0) return;
    const bool is_pixels = is_reduced_[2];
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      const bool is_expected = axis == 0 ? false : (axis == 1) != is_pixels;
      if (is_reduced_[axis] != is_expected) return;
    }
    const Picture picture = picture_of(layout, dims_);
    // Padding is no part of a set, and stays zero.
    if (picture.is_padded() && (!is_pixels || kind_.finish == Finish::Logarithm)) return;
    const std::string result = result_layout(layout, is_pixels);
    if (result.empty()) return;
    add({{picture.images, false},
         {picture.blocks, !is_pixels},
         {picture.pixels, is_pixels},
         {picture.lanes, !is_pixels}},
        layout_name(layout), result);
  }

  // "" where the result lies in no layout that has a name.
  std::string result_layout(PictureLayout layout, bool is_pixels) const {
    const std::vector<int64_t> result = node_.output(0).type().dims;
    if (result.size() == dims_.size()) {
      return is_pixels && lies_as_picture(layout, result) ? layout_name(layout)
                                                          : TESSERA_LAYOUT_DEFAULT;
    }
    const bool is_padded = picture_of(layout, dims_).is_padded();
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

  // Axes that are an input have been read by now.
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

void offer_plain(ProposeContext& context, const Node& node, const std::vector<bool>& is_reduced) {
  const plugin::Type type = node.input(0).type();
  const PlainReduction reduction = find_plain_reduction(node.op(), type.data_type);
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
  std::vector<bool> is_reduced = reduced_axes(node, type.dims.size());
  if (type.data_type != TESSERA_FLOAT32) return offer_plain(context, node, is_reduced);
  ReductionOffer(context, node, reduction_kind(node.op()), std::move(is_reduced)).offer();
}

void offer_global_pool(ProposeContext& context, const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
  }
  const bool is_largest = node.op() == "GlobalMaxPool";
  const ReductionKind kind = {is_largest ? Gathering::Largest : Gathering::Sum,
                              is_largest ? Finish::AsIs : Finish::Mean};
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
