// Ops that copy nothing: their outputs share the memory of their input, or their inputs together
// form the output. A candidate only says where; it has no kernel.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "layout/padding.h"
#include "layout/strided_layout.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Node;
using plugin::Part;
using plugin::ProposeContext;
using plugin::Type;
using plugin::Value;

namespace {

using Dims = std::vector<int64_t>;

constexpr const char* kRowMajor = TESSERA_LAYOUT_DEFAULT;
constexpr const char* kNhwc = "nhwc";

struct Blocked {
  const char* layout;
  int64_t block;
};
constexpr std::array<Blocked, 2> kBlocked = {{{"nchw8c", 8}, {"nchw16c", 16}}};

constexpr int32_t kFirstRequiredAxisOfConcat = 4;

bool has_layouts(const Dims& dims) { return dims.size() >= 3 && dims.size() <= 5; }

int64_t product(const Dims& dims, size_t first) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.end(), int64_t{1},
                         std::multiplies<>());
}

// Axes in the order of memory, the outermost first.
std::vector<size_t> order_in(const std::string& layout, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout == kNhwc) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

std::optional<std::string> explain_unusable(const Node& node) {
  const auto is_known = [](const Value& value) {
    return value.is_present() && value.type().is_known() && value.type().elements() > 0 &&
           plugin::element_bytes(value.type().data_type) > 0;
  };
  if (!is_known(node.input(0))) return "makes views of tensors of known size only";
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (!is_known(node.output(index))) return "makes views of known size only";
  }
  return std::nullopt;
}

// A view has ports for data only: constants besides the first input say where the view is, and are
// not read.
plugin::Candidate view_of(const Node& node, const std::string& from, const std::string& to) {
  plugin::Candidate view = plugin::candidate_for(node);
  view.flags = TESSERA_CANDIDATE_VIEW;
  view.algorithm = "view";
  const int32_t source = node.input(0).id();
  for (size_t index = 1; index < node.input_count(); ++index) {
    const Value value = node.input(index);
    if (!value.is_present() || !value.is_constant() || value.id() == source) continue;
    std::erase_if(view.inputs, [&](const auto& port) { return port.value == value.id(); });
  }
  view.inputs[0].layout = from;
  for (plugin::OutputPort& port : view.outputs) port.layout = to;
  return view;
}

// --- Reshapes and transposes ---------------------------------------------------------------------

// Whether the layout has the same bytes as row-major for these sizes, without padding.
bool is_row_major_too(const std::string& layout, const Dims& dims) {
  if (!has_layouts(dims)) return false;
  if (layout == kNhwc) return dims[1] == 1 || product(dims, 2) == 1;
  return product(dims, 2) == 1 && (dims[0] == 1 || dims[1] % channel_block(layout) == 0);
}

// Elements in the same order under other dimensions.
void offer_reshape(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const Type from = node.input(0).type();
  const Type to = node.output(0).type();
  if (from.data_type != to.data_type || from.elements() != to.elements()) {
    return context.refuse(node.id(), "makes views of equally many elements only");
  }
  if (from.dims == to.dims) {
    context.add(view_of(node, TESSERA_LAYOUT_ANY_DENSE, TESSERA_LAYOUT_ANY_DENSE));
    return;
  }
  context.add(view_of(node, kRowMajor, kRowMajor));
  const bool keeps_channels = has_layouts(from.dims) && has_layouts(to.dims) &&
                              from.dims[0] == to.dims[0] && from.dims[1] == to.dims[1];
  for (const std::string layout : {kNhwc, kBlocked[0].layout, kBlocked[1].layout}) {
    if (keeps_channels) context.add(view_of(node, layout, layout));
    if (is_row_major_too(layout, from.dims)) context.add(view_of(node, layout, kRowMajor));
    const bool is_padded =
        layout != kNhwc && has_layouts(to.dims) && to.dims[1] % channel_block(layout) != 0;
    if (is_row_major_too(layout, to.dims) && !is_padded) {
      context.add(view_of(node, kRowMajor, layout));
    }
  }
}

// The axes without those of length 1.
std::vector<size_t> without_ones(const Dims& dims, const std::vector<size_t>& axes) {
  std::vector<size_t> kept;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(kept),
               [&](size_t axis) { return dims[axis] > 1; });
  return kept;
}

void offer_transpose_view(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const Dims dims = node.input(0).type().dims;
  const std::vector<int64_t> order = plugin::transpose_order(node);
  bool is_offered = false;
  for (const std::string from : {kRowMajor, kNhwc}) {
    for (const std::string to : {kRowMajor, kNhwc}) {
      if ((from != kRowMajor || to != kRowMajor) && !has_layouts(dims)) continue;
      std::vector<size_t> read_order;
      for (const size_t axis : order_in(to, dims.size())) {
        read_order.push_back(static_cast<size_t>(order[axis]));
      }
      if (without_ones(dims, order_in(from, dims.size())) != without_ones(dims, read_order))
        continue;
      context.add(view_of(node, from, to));
      is_offered = true;
    }
  }
  if (!is_offered)
    context.refuse(node.id(), "the transpose moves elements in memory, so it is no view");
}

// --- Parts of a tensor ---------------------------------------------------------------------------

// A box of indices: along each axis `dims` of them, from `first` on, every `step`th.
struct Box {
  Dims first;
  Dims step;
  Dims dims;
};

Part part_in(const std::string& layout, const Dims& whole, const Box& box, int64_t element_bytes) {
  Part part{.offset_bytes = 0, .strides = strided_layout(layout, whole).strides};
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    part.offset_bytes += box.first[axis] * part.strides[axis] * element_bytes;
    part.strides[axis] *= box.step[axis];
  }
  return part;
}

// The part of memory of the box if channels are in blocks; nullopt if it is not dense there.
std::optional<Part> part_in_blocks(int64_t block, const Dims& whole, const Box& box,
                                   int64_t element_bytes) {
  if (product(box.dims, 2) != product(whole, 2)) return std::nullopt;
  const int64_t pixels = product(whole, 2);
  const int64_t image = (whole[1] + block - 1) / block * block * pixels;
  if (box.dims[1] == whole[1]) {
    if (box.step[0] != 1 && box.dims[0] > 1) return std::nullopt;
    return Part{.offset_bytes = box.first[0] * image * element_bytes, .strides = {}};
  }
  const int64_t end = box.first[1] + box.dims[1];
  const bool is_whole_blocks = box.first[1] % block == 0 && (end % block == 0 || end == whole[1]);
  if (box.dims[0] != 1 || box.step[1] != 1 || !is_whole_blocks) return std::nullopt;
  return Part{.offset_bytes = (box.first[0] * image + box.first[1] * pixels) * element_bytes,
              .strides = {}};
}

// Calls use(layout, parts) for each layout in which all boxes are parts of the tensor.
template <class Use>
void for_each_layout(const Dims& whole, const std::vector<Box>& boxes, int64_t element_bytes,
                     Use use) {
  for (const std::string layout : {kRowMajor, kNhwc}) {
    if (layout != kRowMajor && !has_layouts(whole)) continue;
    std::vector<Part> parts;
    for (const Box& box : boxes) parts.push_back(part_in(layout, whole, box, element_bytes));
    use(layout, parts);
  }
  if (!has_layouts(whole)) return;
  for (const Blocked& blocked : kBlocked) {
    std::vector<Part> parts;
    for (const Box& box : boxes) {
      const auto part = part_in_blocks(blocked.block, whole, box, element_bytes);
      if (part) parts.push_back(*part);
    }
    if (parts.size() == boxes.size()) use(blocked.layout, parts);
  }
}

void offer_boxes(ProposeContext& context, const Node& node, const std::vector<Box>& boxes) {
  const Type whole = node.input(0).type();
  for_each_layout(whole.dims, boxes, plugin::element_bytes(whole.data_type),
                  [&](const std::string& layout, const std::vector<Part>& parts) {
                    plugin::Candidate view = view_of(node, layout, layout);
                    for (size_t index = 0; index < parts.size(); ++index) {
                      view.outputs[index].part = parts[index];
                    }
                    context.add(std::move(view));
                  });
}

// The boxes of these tensors, concatenated along `axis`.
std::vector<Box> side_by_side(const std::vector<Dims>& parts, size_t axis) {
  std::vector<Box> boxes;
  int64_t first = 0;
  for (const Dims& dims : parts) {
    Box box{Dims(dims.size(), 0), Dims(dims.size(), 1), dims};
    box.first[axis] = first;
    first += dims[axis];
    boxes.push_back(std::move(box));
  }
  return boxes;
}

void offer_split_view(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const auto axis =
      plugin::find_axis(node.attributes().get_int("axis", 0), node.input(0).type().dims.size());
  if (!axis) return context.refuse(node.id(), "the axis of Split does not exist");
  std::vector<Dims> parts;
  for (size_t index = 0; index < node.output_count(); ++index) {
    parts.push_back(node.output(index).type().dims);
  }
  offer_boxes(context, node, side_by_side(parts, *axis));
}

void offer_slice_view(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const auto lists = plugin::slice_lists(node);
  if (!lists) return context.refuse(node.id(), "makes views of slices with constant starts only");
  const Dims whole = node.input(0).type().dims;
  Box box{Dims(whole.size(), 0), Dims(whole.size(), 1), node.output(0).type().dims};
  for (size_t index = 0; index < lists->starts.size(); ++index) {
    const auto axis = plugin::find_axis(lists->axes[index], whole.size());
    if (!axis || lists->steps[index] < 1) {
      return context.refuse(node.id(), "makes views of slices with steps above 0 only");
    }
    box.first[*axis] = plugin::clamped_index(lists->starts[index], whole[*axis]);
    // A longer step than the axis has elements is only ever taken before the first of them.
    box.step[*axis] = std::min(lists->steps[index], whole[*axis]);
  }
  offer_boxes(context, node, {box});
}

// --- Concatenation -------------------------------------------------------------------------------

void offer_concat_view(ProposeContext& context, const Node& node) {
  std::vector<Dims> parts;
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Type type = node.input(index).type();
    if (!type.is_known() || type.elements() == 0) {
      return context.refuse(node.id(), "joins tensors of known size that are not empty only");
    }
    parts.push_back(type.dims);
  }
  const Type whole = node.output(0).type();
  const int64_t first_axis = node.version() < kFirstRequiredAxisOfConcat ? 1 : 0;
  const auto axis =
      plugin::find_axis(node.attributes().get_int("axis", first_axis), whole.dims.size());
  if (!axis) return context.refuse(node.id(), "the axis of Concat does not exist");
  plugin::Candidate joint = plugin::candidate_for(node);
  if (joint.inputs.size() != node.input_count()) {
    return context.refuse(node.id(), "a tensor that is joined twice lies in one place only");
  }
  joint.flags = TESSERA_CANDIDATE_JOINT;
  joint.algorithm = "joint";
  for_each_layout(whole.dims, side_by_side(parts, *axis), plugin::element_bytes(whole.data_type),
                  [&](const std::string& layout, const std::vector<Part>& positions) {
                    plugin::Candidate offer = joint;
                    offer.outputs[0].layout = layout;
                    for (size_t index = 0; index < positions.size(); ++index) {
                      offer.inputs[index].layout = layout;
                      offer.inputs[index].part = positions[index];
                    }
                    context.add(std::move(offer));
                  });
}

}  // namespace

void propose_views(ProposeContext& context) {
  context.for_each({"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                   [&](const Node& node) { offer_reshape(context, node); });
  context.for_each({"Transpose"}, [&](const Node& node) { offer_transpose_view(context, node); });
  context.for_each({"Split"}, [&](const Node& node) { offer_split_view(context, node); });
  context.for_each({"Slice"}, [&](const Node& node) { offer_slice_view(context, node); });
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat_view(context, node); });
}

}  // namespace tessera::native
