// Softmax and LogSoftmax.
#include <algorithm>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/eltwise.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Node;

namespace {

// Before this version, all axes from `axis` on are normalized together.
constexpr int32_t kFirstSingleAxisVersion = 13;

// The row-major input as [outer, length, inner], normalized over `length`.
struct Rows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

class SoftmaxOffer {
 public:
  SoftmaxOffer(Context& context, const Node& node)
      : context_(context), node_(node), dims_(node.input(0).type().dims) {
    const auto rank = static_cast<int64_t>(dims_.size());
    axis_ = node.attributes().get_int("axis", node.version() < kFirstSingleAxisVersion ? 1 : -1);
    if (axis_ < 0) axis_ += rank;
  }

  void offer() {
    bool is_offered = false;
    const bool is_single = node_.version() >= kFirstSingleAxisVersion;
    if (is_single && axis_ == 1 && can_hold(Format::Nhwc, dims_.size()) && has_pixels()) {
      for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
        is_offered =
            offer(describe(format, dims_), 1, layout_name(format, dims_), false) || is_offered;
      }
    }
    const Rows rows = rows_of();
    const bool is_small = node_.input(0).type().elements() <= kMaxReferenceElements;
    const memory::desc desc =
        rows.inner == 1 ? describe(Format::RowMajor, {rows.outer, rows.length})
                        : describe(Format::RowMajor, {rows.outer, rows.length, rows.inner});
    is_offered = offer(desc, 1, TESSERA_LAYOUT_DEFAULT, is_small || !is_offered) || is_offered;
    if (!is_offered) context_.refuse(node_.id(), "oneDNN has no softmax of this shape");
  }

 private:
  // Without pixels, all formats but the blocked ones are row-major.
  bool has_pixels() const {
    return std::any_of(dims_.begin() + 2, dims_.end(), [](int64_t dim) { return dim > 1; });
  }

  Rows rows_of() const {
    Rows rows;
    const bool is_single = node_.version() >= kFirstSingleAxisVersion;
    for (size_t position = 0; position < dims_.size(); ++position) {
      const auto here = static_cast<int64_t>(position);
      if (here < axis_) {
        rows.outer *= dims_[position];
      } else if (here == axis_ || !is_single) {
        rows.length *= dims_[position];
      } else {
        rows.inner *= dims_[position];
      }
    }
    return rows;
  }

  bool offer(const memory::desc& desc, int axis, const char* layout, bool accepts_reference) {
    const auto kind = node_.op() == "LogSoftmax" ? dnnl::algorithm::softmax_log
                                                 : dnnl::algorithm::softmax_accurate;
    const dnnl::softmax_forward::primitive_desc description(
        context_.engine(), dnnl::prop_kind::forward_inference, kind, desc, desc, axis,
        context_.attributes(), true);
    if (!description || (is_reference(description) && !accepts_reference)) return false;
    PrimitiveOffer offer({node_.id()}, description);
    offer.read_as(DNNL_ARG_SRC, node_.input(0), desc, layout);
    offer.write_as(DNNL_ARG_DST, node_.output(0), desc, layout);
    offer.allow_in_place(node_.input(0));
    const auto elements = static_cast<double>(node_.input(0).type().elements());
    context_.add(offer.candidate(context_.optimistic_seconds(
        5 * elements, 2 * elements * sizeof(float), description.impl_info_str())));
    return true;
  }

  Context& context_;
  Node node_;
  std::vector<int64_t> dims_;
  int64_t axis_ = 0;
};

}  // namespace

void propose_softmaxes(Context& context) {
  context.for_each({"Softmax", "LogSoftmax"}, [&](const Node& node) {
    if (const auto reason = explain_unusable(node.input(0))) {
      return context.refuse(node.id(), *reason);
    }
    if (context.keeps_nan()) return context.refuse(node.id(), explain_lost_nan(node.op()));
    SoftmaxOffer(context, node).offer();
  });
}

}  // namespace tessera::onednn
