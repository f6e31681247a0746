// Transpose, as a reorder; and the three nodes of a channel shuffle, in any layout.
#include "transpose.h"

#include <string>
#include <utility>

#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Node;
using plugin::Value;

bool is_transpose(const Node& node) { return node.domain().empty() && node.op() == "Transpose"; }

std::vector<int64_t> strides_through(const Node& transpose) {
  const memory::dims from =
      describe(Format::RowMajor, transpose.input(0).type().dims).get_strides();
  std::vector<int64_t> strides;
  for (const int64_t axis : plugin::transpose_order(transpose)) {
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  return strides;
}

// The library treats descriptors as equal that differ only in the strides of axes of one element,
// and then confuses their primitives; so these strides are always those of row-major order.
memory::desc describe_strided(const std::vector<int64_t>& dims, std::vector<int64_t> strides) {
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1) continue;
    strides[axis] = axis + 1 < dims.size() ? strides[axis + 1] * dims[axis + 1] : 1;
  }
  return {dims, memory::data_type::f32, strides};
}

namespace {

double seconds_for(const Context& context, const Value& value,
                   const dnnl::primitive_desc_base& description) {
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(value.type().elements());
  return context.optimistic_seconds(0, bytes, description.impl_info_str());
}

void offer_transpose(Context& context, const Node& node) {
  if (const auto reason = explain_unusable(node.input(0))) {
    return context.refuse(node.id(), *reason);
  }
  if (node.input(0).type().rank == 0)
    return context.refuse(node.id(), "a scalar has no axes to transpose");
  const std::vector<int64_t> dims = node.output(0).type().dims;
  const memory::desc from = describe_strided(dims, strides_through(node));
  const memory::desc to = describe(Format::RowMajor, dims);
  const dnnl::reorder::primitive_desc description(context.engine(), from, context.engine(), to,
                                                  context.attributes(), true);
  if (!description || !is_worth_offering(description, node.output(0).type().elements())) {
    return context.refuse(node.id(), "oneDNN has no fast reorder for it");
  }
  PrimitiveOffer offer({node.id()}, description);
  offer.read_as(DNNL_ARG_FROM, node.input(0), from, TESSERA_LAYOUT_DEFAULT);
  offer.write_as(DNNL_ARG_TO, node.output(0), to, TESSERA_LAYOUT_DEFAULT);
  context.add(offer.candidate(seconds_for(context, node.output(0), description)));
}

// [n, groups * c, h, w] to [n, groups, c, h, w], transposed to [n, c, groups, h, w], and back to
// four axes.
constexpr const char* kShuffle =
    "a = Reshape(x, _); b = Transpose{perm=[0, 2, 1, 3, 4]}(a); Reshape(b, _)";

// If channels are innermost, it is a transpose of two axes.
void offer_shuffle_of_pixels(Context& context, const std::vector<int32_t>& nodes,
                             const Value& input, const Value& output, int64_t groups) {
  const std::vector<int64_t> dims = input.type().dims;
  const int64_t channels = dims[1] / groups;
  const std::vector<int64_t> grouped = {dims[0] * dims[2] * dims[3], channels, groups};
  const memory::desc from = describe_strided(grouped, {dims[1], 1, channels});
  const memory::desc to = describe(Format::RowMajor, grouped);
  const dnnl::reorder::primitive_desc description(context.engine(), from, context.engine(), to,
                                                  context.attributes(), true);
  if (!description || is_reference(description)) return;
  const char* layout = layout_name(Format::Nhwc, dims);
  PrimitiveOffer offer(nodes, description);
  offer.read_as(DNNL_ARG_FROM, input, from, layout);
  offer.write_as(DNNL_ARG_TO, output, to, layout);
  context.add(offer.candidate(seconds_for(context, output, description), "shuffle:"));
}

void offer_shuffle(Context& context, const std::vector<int32_t>& nodes) {
  const Node first = context.graph().node(nodes.front());
  const Value input = first.input(0);
  const Value output = context.graph().node(nodes.back()).output(0);
  if (explain_unusable(input) || input.type() != output.type()) return;
  const std::vector<int64_t> dims = input.type().dims;
  const std::vector<int64_t> parted = first.output(0).type().dims;
  if (dims.size() != 4 || parted[0] != dims[0] || parted[1] * parted[2] != dims[1] ||
      parted[3] != dims[2]) {
    return;
  }
  offer_shuffle_of_pixels(context, nodes, input, output, parted[1]);
  for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::RowMajor}) {
    const memory::desc desc = describe(format, dims);
    const dnnl::shuffle_forward::primitive_desc description(
        context.engine(), dnnl::prop_kind::forward_inference, desc, desc, 1,
        static_cast<int>(parted[2]), context.attributes(), true);
    if (!description || is_reference(description)) continue;
    PrimitiveOffer offer(nodes, description);
    offer.read(DNNL_ARG_SRC, input, desc);
    offer.write(DNNL_ARG_DST, output, desc);
    context.add(offer.candidate(seconds_for(context, output, description), "shuffle:"));
  }
}

}  // namespace

void propose_transposes(Context& context) {
  for (const std::vector<int32_t>& nodes : context.graph().match(kShuffle)) {
    offer_shuffle(context, nodes);
  }
  context.for_each({"Transpose"}, [&](const Node& node) { offer_transpose(context, node); });
}

}  // namespace tessera::onednn
