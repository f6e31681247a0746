// LRN across channels.
#include <cmath>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"

namespace tessera::onednn {

using plugin::Node;

namespace {

// oneDNN computes the power 0.75 of a number by its third power, which leaves float32 from 7e12 on;
// then the result is 0 (findings/onednn_lrn_power.sh). Up to these factors, only elements beyond
// 1e6 lead there; with the usual alpha of 1e-4, those beyond 1e8.
constexpr float kMaxFactor = 1;
constexpr float kMaxBias = 1e10F;

bool offer_format(Context& context, const Node& node, Format format, bool accepts_reference) {
  const plugin::Attributes attributes = node.attributes();
  const dnnl::memory::desc desc = describe(format, node.input(0).type().dims);
  const dnnl::lrn_forward::primitive_desc description(
      context.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels,
      desc, desc, attributes.get_int("size"), attributes.get_float("alpha", 1e-4F),
      attributes.get_float("beta", 0.75F), attributes.get_float("bias", 1), context.attributes(),
      true);
  if (!description || (is_reference(description) && !accepts_reference)) return false;
  PrimitiveOffer offer({node.id()}, description);
  offer.read(DNNL_ARG_SRC, node.input(0), desc);
  offer.write(DNNL_ARG_DST, node.output(0), desc);
  const auto elements = static_cast<double>(node.input(0).type().elements());
  const auto work = static_cast<double>(2 * attributes.get_int("size") + 4);
  context.add(offer.candidate(context.optimistic_seconds(
      work * elements, 2 * elements * sizeof(float), description.impl_info_str())));
  return true;
}

void offer_lrn(Context& context, const Node& node) {
  if (const auto reason = explain_unusable(node.input(0))) {
    return context.refuse(node.id(), *reason);
  }
  if (node.attributes().get_int("size") % 2 == 0) {
    return context.refuse(
        node.id(), "oneDNN takes the same number of channels before and after: odd sizes only");
  }
  const plugin::Attributes attributes = node.attributes();
  const float factor =
      attributes.get_float("alpha", 1e-4F) / static_cast<float>(attributes.get_int("size"));
  // Refuses NaN as well.
  if (!(std::abs(factor) <= kMaxFactor && std::abs(attributes.get_float("bias", 1)) <= kMaxBias)) {
    return context.refuse(node.id(), "with these factors, oneDNN's powers may leave float32");
  }
  const plugin::Type type = node.input(0).type();
  bool is_offered = false;
  for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
    if (!can_hold(format, type.dims.size())) continue;
    is_offered = offer_format(context, node, format, false) || is_offered;
  }
  const bool is_small = type.elements() <= kMaxReferenceElements;
  is_offered = offer_format(context, node, Format::RowMajor, is_small || !is_offered) || is_offered;
  if (!is_offered) context.refuse(node.id(), "oneDNN has no LRN of this shape");
}

}  // namespace

void propose_lrns(Context& context) {
  context.for_each({"LRN"}, [&](const Node& node) { offer_lrn(context, node); });
}

}  // namespace tessera::onednn
