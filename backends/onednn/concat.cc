// Concat, in each layout.
#include <string>
#include <vector>

#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;
using plugin::Node;

namespace {

constexpr int32_t kFirstRequiredAxisVersion = 4;
// From this number on, argument indices of the library have another meaning.
constexpr size_t kMaxInputs = DNNL_ARG_MULTIPLE_DST - DNNL_ARG_MULTIPLE_SRC;

// The sizes of the tensors as the primitive sees them, and the axis of the concatenation.
struct View {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<int64_t> output;
  int axis = 0;
};

View view_of(const Node& node, size_t axis) {
  View view;
  for (size_t index = 0; index < node.input_count(); ++index) {
    view.inputs.push_back(node.input(index).type().dims);
  }
  view.output = node.output(0).type().dims;
  view.axis = static_cast<int>(axis);
  return view;
}

// In row-major order, the axes before and from the axis of the concatenation are merged.
View joined(const View& view) {
  const auto join = [&](const std::vector<int64_t>& dims) {
    std::vector<int64_t> result = {1, 1};
    for (size_t position = 0; position < dims.size(); ++position) {
      result[static_cast<int>(position) < view.axis ? 0 : 1] *= dims[position];
    }
    return result;
  };
  View result;
  for (const std::vector<int64_t>& dims : view.inputs) result.inputs.push_back(join(dims));
  result.output = join(view.output);
  result.axis = 1;
  return result;
}

bool offer_view(Context& context, const Node& node, const View& view, Format format,
                bool accepts_reference) {
  std::vector<memory::desc> inputs;
  inputs.reserve(view.inputs.size());
  for (const std::vector<int64_t>& dims : view.inputs) inputs.push_back(describe(format, dims));
  const memory::desc output = describe(format, view.output);
  // Unlike other descriptors, this one throws if there is no such concat.
  dnnl::concat::primitive_desc description;
  try {
    description = dnnl::concat::primitive_desc(context.engine(), output, view.axis, inputs,
                                               context.attributes());
  } catch (const dnnl::error&) {
    return false;
  }
  if (is_reference(description) && !accepts_reference) return false;
  PrimitiveOffer offer({node.id()}, description);
  for (size_t index = 0; index < inputs.size(); ++index) {
    offer.read_as(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(index), node.input(index), inputs[index],
                  layout_name(format, view.output));
  }
  offer.write_as(DNNL_ARG_DST, node.output(0), output, layout_name(format, view.output));
  const double bytes = 2 * static_cast<double>(output.get_size());
  context.add(offer.candidate(context.optimistic_seconds(0, bytes, description.impl_info_str())));
  return true;
}

void offer_concat(Context& context, const Node& node) {
  if (node.input_count() > kMaxInputs) {
    return context.refuse(node.id(), "oneDNN joins at most " + std::to_string(kMaxInputs) +
                                         " tensors, found " + std::to_string(node.input_count()));
  }
  for (size_t index = 0; index < node.input_count(); ++index) {
    if (const auto reason = explain_unusable(node.input(index))) {
      return context.refuse(node.id(), *reason);
    }
  }
  const size_t rank = node.output(0).type().dims.size();
  const size_t axis = plugin::normalized_axis(
      node.attributes().get_int("axis", node.version() < kFirstRequiredAxisVersion ? 1 : 0), rank);
  const View view = view_of(node, axis);
  bool is_offered = false;
  for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc}) {
    if (!can_hold(format, rank)) continue;
    is_offered = offer_view(context, node, view, format, false) || is_offered;
  }
  if (offer_view(context, node, joined(view), Format::RowMajor, false) || is_offered) return;
  if (!offer_view(context, node, joined(view), Format::RowMajor, true)) {
    context.refuse(node.id(), "oneDNN has no concat of this shape");
  }
}

}  // namespace

void propose_concats(Context& context) {
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat(context, node); });
}

}  // namespace tessera::onednn
