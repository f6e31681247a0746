// Ops that move elements: Transpose, Slice, Split, Concat, Expand, Pad with a constant,
// DepthToSpace and SpaceToDepth. Each is a copy between strided parts, for elements of any type.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grid.h"
#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

using Dims = std::vector<int64_t>;

constexpr const char* kCopy = R"(
KERNEL void copy_strided(__global const uchar *x_base, ulong x_at, __global uchar *y_base,
                         ulong y_at, int x_first, int y_first, GRID_PARAMETERS, AXES(x_stride),
                         AXES(y_stride)) {
  GRID_BEGIN
  GRID_BASE(x)
  GRID_BASE(y)
  GRID_LOOP {
    AT(element, y_base, y_at)[y_first + GRID_POSITION(y)] =
        AT(const element, x_base, x_at)[x_first + GRID_POSITION(x)];
  }
}
)";

constexpr const char* kFill = R"(
KERNEL void fill(__global uchar *y_base, ulong y_at, int count, ulong bits) {
  if (get_global_id(0) < (size_t)count) {
    AT(element, y_base, y_at)[get_global_id(0)] = (element)bits;
  }
}
)";
constexpr int32_t kFillGroup = 256;
constexpr int32_t kFirstRequiredAxisOfConcat = 4;
constexpr int32_t kFirstPadInputs = 11;

// A box of elements of x that is copied to one of y.
struct Copy {
  Dims size;
  Dims x_strides;
  Dims y_strides;
  int64_t x_first = 0;
  int64_t y_first = 0;
};

std::string element_type(int64_t bytes) {
  static const std::map<int64_t, std::string> kTypes = {
      {1, "uchar"}, {2, "ushort"}, {4, "uint"}, {8, "ulong"}};
  const auto found = kTypes.find(bytes);
  if (found == kTypes.end()) {
    throw Failure(TESSERA_UNSUPPORTED, "has no kernels for this element type");
  }
  return found->second;
}

std::string element_type(const Value& value) {
  return element_type(plugin::element_bytes(value.type().data_type));
}

Launch launch_of(const Copy& copy, const std::string& element, const Place& from, const Place& to) {
  const Grid grid = make_grid({copy.size, {copy.x_strides, copy.y_strides}}, {"x", "y"});
  Launch launch{.definitions = grid.definitions + define("element", element),
                .source = kCopy,
                .name = "copy_strided",
                .arguments = {from, to, narrow(copy.x_first), narrow(copy.y_first)},
                .groups = grid.groups,
                .group_items = grid.group_items};
  launch.arguments.insert(launch.arguments.end(), grid.arguments.begin(), grid.arguments.end());
  return launch;
}

// Offers a node that makes its output by one copy.
void offer_copy(const Offers& offers, const Node& node, const Copy& copy) {
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Place to = offer.write(node.output(0));
  offer.launch(launch_of(copy, element_type(node.output(0)), from, to));
  offer.add(0, bytes_of(node));
}

void require_known(const Value& value) {
  if (value.is_present() && value.type().is_known()) return;
  throw Failure(TESSERA_UNSUPPORTED, "computes tensors of known size only");
}

void offer_transpose(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  const Dims strides = plugin::dense_strides(node.input(0).type().dims);
  Copy copy{.size = node.output(0).type().dims,
            .y_strides = plugin::dense_strides(node.output(0).type().dims)};
  for (const int64_t axis : plugin::transpose_order(node)) {
    copy.x_strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  offer_copy(offers, node, copy);
}

void offer_expand(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  require_known(node.output(0));
  const Dims size = node.output(0).type().dims;
  offer_copy(offers, node,
             {.size = size,
              .x_strides = plugin::broadcast_strides(node.input(0).type().dims, size.size()),
              .y_strides = plugin::dense_strides(size)});
}

void offer_slice(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  require_known(node.output(0));
  const auto lists = plugin::slice_lists(node);
  if (!lists || !lists->ends) {
    throw Failure(TESSERA_UNSUPPORTED, "slices at constant positions only");
  }
  const Dims whole = node.input(0).type().dims;
  const Dims size = node.output(0).type().dims;
  Copy copy{.size = size,
            .x_strides = plugin::dense_strides(whole),
            .y_strides = plugin::dense_strides(size)};
  for (size_t index = 0; index < lists->starts.size(); ++index) {
    const size_t axis = plugin::normalized_axis(lists->axes[index], whole.size());
    const plugin::SliceRange range = plugin::slice_range(
        whole[axis], lists->starts[index], (*lists->ends)[index], lists->steps[index]);
    copy.x_first += range.start * copy.x_strides[axis];
    copy.x_strides[axis] *= range.step;
  }
  offer_copy(offers, node, copy);
}

void offer_split(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  const Dims whole = node.input(0).type().dims;
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), whole.size());
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Dims strides = plugin::dense_strides(whole);
  int64_t first = 0;
  for (size_t index = 0; index < node.output_count(); ++index) {
    const Value part = node.output(index);
    // An output without readers has no size here, so the positions of the others are unknown.
    const Place to = offer.write(part);
    const Dims size = part.type().dims;
    offer.launch(launch_of({.size = size,
                            .x_strides = strides,
                            .y_strides = plugin::dense_strides(size),
                            .x_first = first * strides[axis]},
                           element_type(part), from, to));
    first += size[axis];
  }
  offer.add(0, bytes_of(node));
}

void offer_concat(const Offers& offers, const Node& node) {
  require_known(node.output(0));
  const Dims whole = node.output(0).type().dims;
  const int64_t default_axis = node.version() < kFirstRequiredAxisOfConcat ? 1 : 0;
  const size_t axis =
      plugin::normalized_axis(node.attributes().get_int("axis", default_axis), whole.size());
  Offer offer(offers, node);
  const Dims strides = plugin::dense_strides(whole);
  std::vector<Place> parts;
  for (size_t index = 0; index < node.input_count(); ++index) {
    parts.push_back(offer.read(node.input(index)));
  }
  const Place to = offer.write(node.output(0));
  int64_t first = 0;
  for (size_t index = 0; index < node.input_count(); ++index) {
    const Dims size = node.input(index).type().dims;
    offer.launch(launch_of({.size = size,
                            .x_strides = plugin::dense_strides(size),
                            .y_strides = strides,
                            .y_first = first * strides[axis]},
                           element_type(node.output(0)), parts[index], to));
    first += size[axis];
  }
  offer.add(0, bytes_of(node));
}

// --- Pad -----------------------------------------------------------------------------------------

struct Pads {
  Dims begin;  // for each axis of the data
  uint64_t value_bits = 0;
};

uint64_t bits_of_constant(const Value& value) {
  uint64_t bits = 0;
  const int64_t bytes = plugin::element_bytes(value.type().data_type);
  if (!value.is_constant() || value.constant() == nullptr || value.type().elements() != 1) {
    throw Failure(TESSERA_UNSUPPORTED, "pads with a constant number only");
  }
  std::memcpy(&bits, value.constant(), static_cast<size_t>(bytes));
  return bits;
}

Pads pads_of(const Node& node, size_t rank) {
  Pads pads{.begin = Dims(rank, 0)};
  if (node.version() < kFirstPadInputs) {
    // Version 1 has another name for the same list.
    Dims numbers = node.attributes().get_ints("pads");
    if (numbers.empty()) numbers = node.attributes().get_ints("paddings");
    if (numbers.size() != 2 * rank) throw Failure(TESSERA_UNSUPPORTED, "cannot read its pads");
    std::copy_n(numbers.begin(), rank, pads.begin.begin());
    const float value = node.attributes().get_float("value");
    std::memcpy(&pads.value_bits, &value, sizeof(value));
    return pads;
  }
  const auto numbers = plugin::constant_integers(node.input(1));
  if (!numbers) throw Failure(TESSERA_UNSUPPORTED, "pads by constant numbers only");
  std::optional<Dims> axes;
  if (node.input(3).is_present()) {
    axes = plugin::constant_integers(node.input(3));
    if (!axes) throw Failure(TESSERA_UNSUPPORTED, "pads along constant axes only");
  }
  for (size_t index = 0; index < numbers->size() / 2; ++index) {
    const size_t axis = axes ? plugin::normalized_axis((*axes)[index], rank) : index;
    pads.begin[axis] = (*numbers)[index];
  }
  if (node.input(2).is_present()) pads.value_bits = bits_of_constant(node.input(2));
  return pads;
}

// The copy of the elements that both the data and the output contain. Pads may be negative.
std::optional<Copy> padded_part(const Dims& data, const Dims& output, const Dims& begin) {
  Copy copy{.x_strides = plugin::dense_strides(data), .y_strides = plugin::dense_strides(output)};
  for (size_t axis = 0; axis < data.size(); ++axis) {
    const int64_t first = std::max<int64_t>(0, begin[axis]);
    const int64_t last = std::min(output[axis], begin[axis] + data[axis]);
    if (last <= first) return std::nullopt;
    copy.size.push_back(last - first);
    copy.y_first += first * copy.y_strides[axis];
    copy.x_first += (first - begin[axis]) * copy.x_strides[axis];
  }
  return copy;
}

void offer_pad(const Offers& offers, const Node& node) {
  const std::string mode = node.attributes().get_string("mode", "constant");
  if (mode != "constant") {
    throw Failure(TESSERA_UNSUPPORTED, "pads with a constant only, found mode '" + mode + "'");
  }
  require_known(node.input(0));
  require_known(node.output(0));
  const Dims data = node.input(0).type().dims;
  const bool is_old_double =
      node.version() < kFirstPadInputs && node.input(0).type().data_type != TESSERA_FLOAT32;
  if (is_old_double) throw Failure(TESSERA_UNSUPPORTED, "has no kernels for this element type");
  const Pads pads = pads_of(node, data.size());
  const Value output = node.output(0);
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Place to = offer.write(output);
  const int64_t elements = output.type().elements();
  offer.launch({.definitions = define("element", element_type(output)),
                .source = kFill,
                .name = "fill",
                .arguments = {to, narrow(elements), static_cast<int64_t>(pads.value_bits)},
                .groups = groups_for(elements, kFillGroup),
                .group_items = kFillGroup});
  if (const auto part = padded_part(data, output.type().dims, pads.begin)) {
    offer.launch(launch_of(*part, element_type(output), from, to));
  }
  offer.add(0, bytes_of(node));
}

// --- Blocks of pixels ----------------------------------------------------------------------------

// A permutation of the six axes that blocks split the tensor into.
void offer_blocks(const Offers& offers, const Node& node, const Dims& axes,
                  const std::vector<size_t>& order) {
  const Dims strides = plugin::dense_strides(axes);
  Copy copy;
  for (const size_t axis : order) {
    copy.size.push_back(axes[axis]);
    copy.x_strides.push_back(strides[axis]);
  }
  copy.y_strides = plugin::dense_strides(copy.size);
  offer_copy(offers, node, copy);
}

void offer_depth_to_space(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  const Dims dims = node.input(0).type().dims;
  const int64_t block = node.attributes().get_int("blocksize", 1);
  const int64_t channels = dims[1] / (block * block);
  if (node.attributes().get_string("mode", "DCR") == "DCR") {
    return offer_blocks(offers, node, {dims[0], block, block, channels, dims[2], dims[3]},
                        {0, 3, 4, 1, 5, 2});
  }
  offer_blocks(offers, node, {dims[0], channels, block, block, dims[2], dims[3]},
               {0, 1, 4, 2, 5, 3});
}

void offer_space_to_depth(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  const Dims dims = node.input(0).type().dims;
  const int64_t block = node.attributes().get_int("blocksize", 1);
  const bool is_depth_first = node.attributes().get_string("mode", "DCR") == "CRD";
  offer_blocks(offers, node, {dims[0], dims[1], dims[2] / block, block, dims[3] / block, block},
               is_depth_first ? std::vector<size_t>{0, 1, 3, 5, 2, 4}
                              : std::vector<size_t>{0, 3, 5, 1, 2, 4});
}

// --- Views ---------------------------------------------------------------------------------------

// The elements of the input in the same order under other dimensions.
void offer_view(const Offers& offers, const Node& node) {
  require_known(node.input(0));
  const plugin::Type from = node.input(0).type();
  const plugin::Type to = node.output(0).type();
  const bool is_same = to.is_known() && from.data_type == to.data_type &&
                       from.elements() == to.elements() && from.elements() > 0 &&
                       plugin::element_bytes(from.data_type) > 0;
  if (!is_same) {
    throw Failure(TESSERA_UNSUPPORTED, "makes views of equally many elements only");
  }
  plugin::Candidate view;
  view.nodes = {node.id()};
  view.algorithm = "view";
  view.flags = TESSERA_CANDIDATE_VIEW;
  view.inputs = {{.value = node.input(0).id(), .layout = offers.layout()}};
  view.outputs = {{.value = node.output(0).id(), .layout = offers.layout()}};
  offers.context().add(std::move(view));
}

}  // namespace

Launch broadcast_floats(const Place& from, const Dims& from_dims, const Place& to,
                        const Dims& to_dims) {
  return launch_of({.size = to_dims,
                    .x_strides = plugin::broadcast_strides(from_dims, to_dims.size()),
                    .y_strides = plugin::dense_strides(to_dims)},
                   element_type(sizeof(float)), from, to);
}

void propose_copies(const Offers& offers) {
  using OfferNode = void (*)(const Offers&, const Node&);
  const std::pair<const char*, OfferNode> ops[] = {
      {"Concat", offer_concat}, {"DepthToSpace", offer_depth_to_space},
      {"Expand", offer_expand}, {"Pad", offer_pad},
      {"Slice", offer_slice},   {"SpaceToDepth", offer_space_to_depth},
      {"Split", offer_split},   {"Transpose", offer_transpose},
  };
  for (const auto& [op, offer] : ops) {
    offers.context().for_each({op}, [&offers, offer](const Node& node) { offer(offers, node); });
  }
}

void propose_views(const Offers& offers) {
  offers.context().for_each({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"},
                            [&](const Node& node) { offer_view(offers, node); });
}

}  // namespace tessera::opencl
