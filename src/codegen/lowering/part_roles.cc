// The roles of ops that cut tensors or join them: Concat, Slice, Split.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "codegen/lowering/lower_op.h"
#include "ops/convert_elements.h"

namespace tessera::codegen {
namespace {

using Integers = std::vector<int64_t>;

// Refused here, before groups try to take in one part after the other.
constexpr const char* kTooManyParts = "has more than 16 parts";

// A list that is an attribute in some versions and an input in others; nullopt if it is known only
// in a run, empty if it is left out.
std::optional<Integers> list_of(const Graph& graph, const Node& node, std::string_view attribute,
                                size_t input) {
  if (const auto* list = node.attributes.find_ints(attribute)) return *list;
  if (input >= node.inputs.size() || node.inputs[input].is_none()) return Integers{};
  const std::optional<Tensor> constant = small_constant(graph, node.inputs[input]);
  if (!constant || !is_integer(constant->type())) return std::nullopt;
  Integers list(static_cast<size_t>(constant->elements()));
  ops::convert_elements(constant->type(), constant->data(), DataType::Int64, list.data(),
                        constant->elements());
  return list;
}

std::vector<SliceRange> whole_ranges(const std::vector<int64_t>& dims) {
  std::vector<SliceRange> ranges;
  for (const int64_t dim : dims) ranges.push_back({.count = dim});
  return ranges;
}

std::optional<size_t> axis_at(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
}

// --- Slice ---------------------------------------------------------------------------------------

std::string place_slice(const Graph& graph, const Node& node, FusionRole& role) {
  place_first(graph, node, role);
  const std::vector<int64_t>& dims = role.input_dims[0];
  const std::vector<int64_t> sliced = dims_of(graph, node.outputs[0]);
  const std::optional<Integers> starts = list_of(graph, node, "starts", 1);
  std::optional<Integers> axes = list_of(graph, node, "axes", 3);
  std::optional<Integers> steps = list_of(graph, node, "", 4);
  if (!starts || !axes || !steps) return "its starts, axes or steps are not known before running";
  for (size_t at = axes->size(); at < starts->size(); ++at)
    axes->push_back(static_cast<int64_t>(at));
  steps->resize(starts->size(), 1);
  std::vector<SliceRange> ranges = whole_ranges(dims);
  for (size_t at = 0; at < starts->size(); ++at) {
    const std::optional<size_t> axis = axis_at((*axes)[at], dims.size());
    if (!axis) return "has an axis that its input lacks";
    const int64_t count = sliced[*axis];
    // The step of a single element may be anything.
    const int64_t step = count == 1 ? 1 : (*steps)[at];
    if (step < 1) return "takes elements backwards";
    int64_t start = (*starts)[at];
    if (start < 0) start += dims[*axis];
    // A step backwards begins at the last element at most.
    const int64_t last = (*steps)[at] < 0 ? dims[*axis] - 1 : dims[*axis];
    ranges[*axis] = {std::clamp<int64_t>(start, 0, last), step, count};
  }
  role.slices.push_back(std::move(ranges));
  return "";
}

// --- Split ---------------------------------------------------------------------------------------

std::string place_split(const Graph& graph, const Node& node, FusionRole& role) {
  place_first(graph, node, role);
  const std::vector<int64_t>& dims = role.input_dims[0];
  if (std::ssize(node.outputs) > kMaxParts) return kTooManyParts;
  const std::optional<size_t> axis = axis_at(node.attributes.get_int("axis"), dims.size());
  if (!axis) return "has an axis that its input lacks";
  SliceRange range;
  for (const ValueId output : node.outputs) {
    // Its size is known only from the others.
    if (output.is_none()) return "leaves out an output";
    range.count = dims_of(graph, output)[*axis];
    std::vector<SliceRange>& ranges = role.slices.emplace_back(whole_ranges(dims));
    ranges[*axis] = range;
    range.start += range.count;
  }
  return "";
}

// --- Concat --------------------------------------------------------------------------------------

std::string place_concat(const Graph& graph, const Node& node, FusionRole& role) {
  if (std::ssize(node.inputs) > kMaxParts) return kTooManyParts;
  const size_t rank = dims_of(graph, node.outputs[0]).size();
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    role.input_dims[index] = dims_of(graph, node.inputs[index]);
  }
  const std::optional<size_t> axis = axis_at(node.attributes.get_int("axis"), rank);
  if (!axis) return "has an axis that its inputs lack";
  role.concat_axis = *axis;
  return "";
}

constexpr FusionRow kPartRolesRows[] = {
    {"Concat", FusionKind::Concat, ops::kAllTypes, nullptr, place_concat},
    {"Slice", FusionKind::Slice, ops::kAllTypes, nullptr, place_slice},
    {"Split", FusionKind::Slice, ops::kAllTypes, nullptr, place_split},
};

}  // namespace

std::span<const FusionRow> part_rows() { return kPartRolesRows; }

}  // namespace tessera::codegen
