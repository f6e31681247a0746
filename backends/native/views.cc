// Ops that move nothing: their outputs lie in the memory of their input, or their inputs together
// make up the output. Where, is all that is offered; none has a kernel.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families.h"

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

constexpr int32_t kFirstInputsVersionOfSlice = 10;
constexpr int32_t kFirstRequiredAxisOfConcat = 4;

int64_t block_of(const std::string& layout) {
  return layout == kBlocked[0].layout ? kBlocked[0].block : kBlocked[1].block;
}

bool has_layouts(const Dims& dims) { return dims.size() >= 3 && dims.size() <= 5; }

int64_t product(const Dims& dims, size_t first) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(first), dims.end(), int64_t{1},
                         std::multiplies<>());
}

// Dimensions in the order in which they lie in memory, the outermost first.
std::vector<size_t> order_in(const std::string& layout, size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (layout == kNhwc) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Dims strides_in(const std::string& layout, const Dims& dims) {
  Dims strides(dims.size(), 1);
  const std::vector<size_t> order = order_in(layout, dims.size());
  int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= dims[*axis];
  }
  return strides;
}

// nullopt where the axis is not there.
std::optional<size_t> axis_of(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
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

// Ports for what is in memory: constants besides the first input say where, and are not read.
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

// --- The same elements in the same order ---------------------------------------------------------

// Whether channels of all pixels lie in memory as they do row by row, without padding between.
bool is_row_major_too(const std::string& layout, const Dims& dims) {
  if (!has_layouts(dims)) return false;
  if (layout == kNhwc) return dims[1] == 1 || product(dims, 2) == 1;
  return product(dims, 2) == 1 && (dims[0] == 1 || dims[1] % block_of(layout) == 0);
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
        layout != kNhwc && has_layouts(to.dims) && to.dims[1] % block_of(layout) != 0;
    if (is_row_major_too(layout, to.dims) && !is_padded) {
      context.add(view_of(node, kRowMajor, layout));
    }
  }
}

// The axes of the input in the order in which those of the output lie, without those of length 1.
std::vector<size_t> walk(const Dims& dims, const std::vector<size_t>& axes) {
  std::vector<size_t> walked;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(walked),
               [&](size_t axis) { return dims[axis] > 1; });
  return walked;
}

void offer_transpose(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const Dims dims = node.input(0).type().dims;
  std::vector<int64_t> order = node.attributes().get_ints("perm");
  if (order.empty()) {
    for (size_t axis = dims.size(); axis-- > 0;) order.push_back(static_cast<int64_t>(axis));
  }
  bool is_offered = false;
  for (const std::string from : {kRowMajor, kNhwc}) {
    for (const std::string to : {kRowMajor, kNhwc}) {
      if ((from != kRowMajor || to != kRowMajor) && !has_layouts(dims)) continue;
      std::vector<size_t> made;
      for (const size_t axis : order_in(to, dims.size())) {
        made.push_back(static_cast<size_t>(order[axis]));
      }
      if (walk(dims, order_in(from, dims.size())) != walk(dims, made)) continue;
      context.add(view_of(node, from, to));
      is_offered = true;
    }
  }
  if (!is_offered)
    context.refuse(node.id(), "the transpose moves elements in memory, so it is no view");
}

// --- Parts of a tensor
// -----------------------------------------------------------------------------

// Some indices of each dimension: from `first` on, every `step`th, `dims` of them.
struct Box {
  Dims first;
  Dims step;
  Dims dims;
};

Part part_in(const std::string& layout, const Dims& whole, const Box& box, int64_t element_bytes) {
  Part part{.offset_bytes = 0, .strides = strides_in(layout, whole)};
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    part.offset_bytes += box.first[axis] * part.strides[axis] * element_bytes;
    part.strides[axis] *= box.step[axis];
  }
  return part;
}

// Where the box lies if channels are in blocks; nullopt where it is not dense there.
std::optional<Part> part_in_blocks(int64_t block, const Dims& whole, const Box& box,
                                   int64_t element_bytes) {
  if (product(box.dims, 2) != product(whole, 2)) return std::nullopt;
  const int64_t pixels = product(whole, 2);
  const int64_t picture = (whole[1] + block - 1) / block * block * pixels;
  if (box.dims[1] == whole[1]) {
    if (box.step[0] != 1 && box.dims[0] > 1) return std::nullopt;
    return Part{.offset_bytes = box.first[0] * picture * element_bytes, .strides = {}};
  }
  const int64_t end = box.first[1] + box.dims[1];
  const bool is_whole_blocks = box.first[1] % block == 0 && (end % block == 0 || end == whole[1]);
  if (box.dims[0] != 1 || box.step[1] != 1 || !is_whole_blocks) return std::nullopt;
  return Part{.offset_bytes = (box.first[0] * picture + box.first[1] * pixels) * element_bytes,
              .strides = {}};
}

// Where all boxes lie in each layout that has a place for them.
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

// Boxes of these tensors side by side along `axis`.
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

void offer_split(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const auto axis = axis_of(node.attributes().get_int("axis", 0), node.input(0).type().dims.size());
  if (!axis) return context.refuse(node.id(), "the axis of Split does not exist");
  std::vector<Dims> parts;
  for (size_t index = 0; index < node.output_count(); ++index) {
    parts.push_back(node.output(index).type().dims);
  }
  offer_boxes(context, node, side_by_side(parts, *axis));
}

// Elements of a constant of int32 or int64; nullopt where it is not known.
std::optional<Dims> integers_of(const Value& value) {
  const void* elements = value.is_present() ? value.constant() : nullptr;
  if (elements == nullptr) return std::nullopt;
  const Type type = value.type();
  Dims integers(static_cast<size_t>(type.elements()));
  if (type.data_type == TESSERA_INT64) {
    std::copy_n(static_cast<const int64_t*>(elements), integers.size(), integers.begin());
  } else if (type.data_type == TESSERA_INT32) {
    std::copy_n(static_cast<const int32_t*>(elements), integers.size(), integers.begin());
  } else {
    return std::nullopt;
  }
  return integers;
}

// What a slice says of the axes that it names.
struct Cuts {
  Dims starts;
  Dims axes;
  Dims steps;
};

std::optional<Cuts> cuts_of(const Node& node) {
  const auto in_order = [](size_t count) {
    Dims axes(count);
    std::iota(axes.begin(), axes.end(), int64_t{0});
    return axes;
  };
  Cuts cuts;
  if (node.version() < kFirstInputsVersionOfSlice) {
    cuts.starts = node.attributes().get_ints("starts");
    cuts.axes = node.attributes().get_ints("axes");
  } else {
    const auto starts = integers_of(node.input(1));
    if (!starts) return std::nullopt;
    cuts.starts = *starts;
    const std::array<std::pair<size_t, Dims*>, 2> lists = {{{3, &cuts.axes}, {4, &cuts.steps}}};
    for (const auto& [input, target] : lists) {
      if (input >= node.input_count() || !node.input(input).is_present()) continue;
      const auto integers = integers_of(node.input(input));
      if (!integers) return std::nullopt;
      *target = *integers;
    }
  }
  if (cuts.axes.empty()) cuts.axes = in_order(cuts.starts.size());
  if (cuts.steps.empty()) cuts.steps.assign(cuts.starts.size(), 1);
  const bool is_whole =
      cuts.axes.size() == cuts.starts.size() && cuts.steps.size() == cuts.starts.size();
  return is_whole ? std::optional(cuts) : std::nullopt;
}

void offer_slice(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unusable(node)) return context.refuse(node.id(), *reason);
  const auto cuts = cuts_of(node);
  if (!cuts) return context.refuse(node.id(), "makes views of slices with constant starts only");
  const Dims whole = node.input(0).type().dims;
  Box box{Dims(whole.size(), 0), Dims(whole.size(), 1), node.output(0).type().dims};
  for (size_t index = 0; index < cuts->starts.size(); ++index) {
    const auto axis = axis_of(cuts->axes[index], whole.size());
    if (!axis || cuts->steps[index] < 1) {
      return context.refuse(node.id(), "makes views of slices with steps above 0 only");
    }
    const int64_t start = cuts->starts[index];
    box.first[*axis] =
        std::clamp<int64_t>(start < 0 ? start + whole[*axis] : start, 0, whole[*axis]);
    // A longer step than the axis has elements is only ever taken before the first of them.
    box.step[*axis] = std::min(cuts->steps[index], whole[*axis]);
  }
  offer_boxes(context, node, {box});
}

// --- Tensors that make up another one ------------------------------------------------------------

void offer_concat(ProposeContext& context, const Node& node) {
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
  const auto axis = axis_of(node.attributes().get_int("axis", first_axis), whole.dims.size());
  if (!axis) return context.refuse(node.id(), "the axis of Concat does not exist");
  plugin::Candidate joint = plugin::candidate_for(node);
  if (joint.inputs.size() != node.input_count()) {
    return context.refuse(node.id(), "a tensor that is joined twice lies in one place only");
  }
  joint.flags = TESSERA_CANDIDATE_JOINT;
  joint.algorithm = "joint";
  for_each_layout(whole.dims, side_by_side(parts, *axis), plugin::element_bytes(whole.data_type),
                  [&](const std::string& layout, const std::vector<Part>& places) {
                    plugin::Candidate offer = joint;
                    offer.outputs[0].layout = layout;
                    for (size_t index = 0; index < places.size(); ++index) {
                      offer.inputs[index].layout = layout;
                      offer.inputs[index].part = places[index];
                    }
                    context.add(std::move(offer));
                  });
}

}  // namespace

void propose_views(ProposeContext& context) {
  context.for_each({"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                   [&](const Node& node) { offer_reshape(context, node); });
  context.for_each({"Transpose"}, [&](const Node& node) { offer_transpose(context, node); });
  context.for_each({"Split"}, [&](const Node& node) { offer_split(context, node); });
  context.for_each({"Slice"}, [&](const Node& node) { offer_slice(context, node); });
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat(context, node); });
}

}  // namespace tessera::native
