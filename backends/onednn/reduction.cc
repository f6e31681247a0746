// The Reduce family: as reductions over the innermost axes, and, over the pixels of a feature map
// in any layout, as poolings of the whole area, for which oneDNN has fast code.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/accuracy.h"
#include "base/chain.h"
#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::algorithm;
using dnnl::memory;
using plugin::Node;
using plugin::Value;

namespace {

struct Kind {
  algorithm reduction = algorithm::undef;
  float power = 0;
  std::optional<algorithm> pooling = std::nullopt;
};

const Kind& kind_of(std::string_view op) {
  static const std::map<std::string_view, Kind> kKinds = {
      {"ReduceL1", {algorithm::reduction_norm_lp_power_p_sum, 1}},
      {"ReduceL2", {algorithm::reduction_norm_lp_sum, 2}},
      {"ReduceMean", {algorithm::reduction_mean, 0, algorithm::pooling_avg_include_padding}},
      {"ReduceProd", {algorithm::reduction_mul}},
      {"ReduceSum", {algorithm::reduction_sum}},
      {"ReduceSumSquare", {algorithm::reduction_norm_lp_power_p_sum, 2}},
  };
  return kKinds.at(op);
}

// Reference code of oneDNN takes some 20 ns for each element that it reduces.
constexpr int64_t kMostReducedByReference = 256;

class ReductionOffer {
 public:
  ReductionOffer(Context& context, const Node& node)
      : context_(context),
        node_(node),
        kind_(kind_of(node.op())),
        dims_(node.input(0).type().dims),
        is_reduced_(plugin::reduced_axes(node, dims_.size())) {}

  void offer() {
    bool is_offered = false;
    if (kind_.pooling && covers_pixels()) {
      for (const Format format :
           {Format::Nchw16c, Format::Nchw8c, Format::Nhwc, Format::RowMajor}) {
        is_offered = offer_pooling(format) || is_offered;
      }
    }
    const bool is_small = node_.input(0).type().elements() <= kMostReducedByReference;
    if (!offer_reduction(is_small) && !is_offered) {
      refuse("oneDNN has only reference code for these axes");
    }
  }

 private:
  // Whether exactly the axes behind the channels are reduced.
  bool covers_pixels() const {
    if (!can_hold(Format::Nhwc, dims_.size())) return false;
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      if (is_reduced_[axis] != (axis >= 2)) return false;
    }
    return true;
  }

  double seconds(const dnnl::primitive_desc_base& description) const {
    const auto elements = static_cast<double>(node_.input(0).type().elements());
    return context_.optimistic_seconds(elements, elements * sizeof(float),
                                       description.impl_info_str());
  }

  // The layout of the output for an input in `format` whose pixels are reduced; nullptr if there is
  // none.
  const char* output_layout(Format format) const {
    if (node_.output(0).type().rank == node_.input(0).type().rank)
      return layout_name(format, node_.output(0).type().dims);
    // Only channels are left: contiguous, if they are not padded.
    if (format == Format::Nchw8c && dims_[1] % 8 != 0) return nullptr;
    if (format == Format::Nchw16c && dims_[1] % 16 != 0) return nullptr;
    return TESSERA_LAYOUT_DEFAULT;
  }

  bool offer_pooling(Format format) {
    const char* layout = output_layout(format);
    if (layout == nullptr) return false;
    std::vector<int64_t> pooled = dims_;
    std::fill(pooled.begin() + 2, pooled.end(), 1);
    const memory::dims window(dims_.begin() + 2, dims_.end());
    const memory::dims zeros(window.size(), 0);
    const memory::desc from = describe(format, dims_);
    const memory::desc to = describe_pooled(format, dims_, pooled);
    const dnnl::pooling_forward::primitive_desc description(
        context_.engine(), dnnl::prop_kind::forward_inference, *kind_.pooling, from, to, window,
        window, zeros, zeros, zeros, context_.attributes(), true);
    if (!description || is_reference(description)) return false;
    PrimitiveOffer offer({node_.id()}, description);
    offer.read(DNNL_ARG_SRC, node_.input(0), from);
    offer.write_as(DNNL_ARG_DST, node_.output(0), to, layout);
    context_.add(offer.candidate(seconds(description), "pooling:"));
    return true;
  }

  bool offer_reduction(bool accepts_reference) {
    std::vector<int64_t> from;
    std::vector<int64_t> to;
    bool was_reduced = false;
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      if (dims_[axis] == 1) continue;
      if (!from.empty() && is_reduced_[axis] == was_reduced) {
        from.back() *= dims_[axis];
      } else {
        from.push_back(dims_[axis]);
        to.push_back(0);
      }
      was_reduced = is_reduced_[axis];
      to.back() = was_reduced ? 1 : from.back();
    }
    if (from == to) refuse("each reduction is over one element, so there is nothing to reduce");
    const memory::desc source = describe(Format::RowMajor, from);
    const memory::desc result = describe(Format::RowMajor, to);
    const dnnl::reduction::primitive_desc description(context_.engine(), kind_.reduction, source,
                                                      result, kind_.power, 0, context_.attributes(),
                                                      true);
    if (!description || (is_reference(description) && !accepts_reference)) return false;
    PrimitiveOffer offer({node_.id()}, description);
    offer.read_as(DNNL_ARG_SRC, node_.input(0), source, TESSERA_LAYOUT_DEFAULT);
    offer.write_as(DNNL_ARG_DST, node_.output(0), result, TESSERA_LAYOUT_DEFAULT);
    context_.add(offer.candidate(seconds(description)));
    return true;
  }

  Context& context_;
  Node node_;
  Kind kind_;
  std::vector<int64_t> dims_;
  std::vector<bool> is_reduced_;
};

// The number of elements that are reduced to one.
int64_t elements_of_each(const Node& node) {
  return node.input(0).type().elements() / std::max<int64_t>(1, node.output(0).type().elements());
}

}  // namespace

void propose_reductions(Context& context) {
  // Masks of attention are rows of -inf, whose maximum says whether they hide all elements.
  context.for_each({"ReduceMax", "ReduceMin"}, [&](const Node& node) {
    context.refuse(node.id(),
                   "oneDNN returns a finite number as the maximum or minimum of infinities");
  });
  context.for_each(
      {"ReduceL1", "ReduceL2", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare"},
      [&](const Node& node) {
        if (const auto reason = explain_unusable(node.input(0))) {
          return context.refuse(node.id(), *reason);
        }
        const std::string inexact = explain_inexact_reduction(node.op(), elements_of_each(node));
        if (!inexact.empty()) return context.refuse(node.id(), inexact);
        ReductionOffer(context, node).offer();
      });
}

}  // namespace tessera::onednn
