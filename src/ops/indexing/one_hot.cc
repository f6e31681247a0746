// OneHot: each index becomes a line of `depth` elements, one of which has the on-value.
#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int64_t kNowhere = -1;

// Converts a number of any type to an integer by truncation; nullopt if that is impossible.
template <class T>
std::optional<int64_t> whole(T stored) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (stored > uint64_t{INT64_MAX}) return std::nullopt;
    }
    return static_cast<int64_t>(stored);
  } else {
    const auto value = static_cast<double>(static_cast<compute_t<T>>(stored));
    if (!(std::abs(value) < 0x1p62)) return std::nullopt;
    return static_cast<int64_t>(value);
  }
}

// The depth, which may be a symbol; nullopt if it is unknown.
std::optional<Dim> depth_of(const InferContext& context) {
  const auto& elements = context.elements(1);
  const auto fail = [&](const std::string& found) {
    context.fail_input(1, "expected one whole number of at least 0, found " + found);
  };
  if (const Shape* shape = context.shape(1); shape != nullptr && is_known(*shape)) {
    if (product(*shape) != Dim(1)) fail("shape " + text(*shape));
  }
  std::optional<Dim> depth;
  if (elements && elements->size() == 1) {
    depth = elements->front();
  } else if (const Tensor* constant = context.constant(1)) {
    visit_numeric(constant->type(), [&](auto tag) {
      const auto value = whole(constant->as<typename decltype(tag)::type>().front());
      if (!value) fail("a number that does not fit 64 bits");
      depth = *value;
    });
  }
  if (depth && depth->is_known() && depth->value() < 0) fail(depth->text());
  return depth;
}

void infer_one_hot(InferContext& context) {
  const auto depth = depth_of(context);
  if (const Shape* values = context.shape(2); values != nullptr && is_known(*values)) {
    if (product(*values) != Dim(2)) {
      context.fail_input(2, "expected two elements, off and on, found shape " + text(*values));
    }
  }
  const Shape* indices = context.shape(0);
  if (indices == nullptr) return context.set_output(0, context.element(2));
  const auto rank = static_cast<int64_t>(indices->size()) + 1;
  const int64_t axis = context.normalized_axis(context.node().attributes.get_int("axis"), rank);
  Shape output = *indices;
  output.insert(output.begin() + axis,
                depth ? *depth : unknown_dim(context, 0, static_cast<size_t>(axis)));
  context.set_output(0, context.element(2), output);
}

constexpr int kFirstWrappingVersion = 11;  // negative indices count from the end

// The position of the on-value for each index; kNowhere for an index outside of [-depth, depth),
// or of [0, depth) before version 11.
std::pmr::vector<int64_t> positions_of(const KernelCall& call, int64_t depth) {
  const TensorView& indices = call.inputs[0];
  std::pmr::vector<int64_t> positions(&call.scratch);
  positions.reserve(static_cast<size_t>(indices.elements));
  const int64_t lowest = call.node.version < kFirstWrappingVersion ? 0 : -depth;
  visit_numeric(indices.type, [&](auto tag) {
    for (const auto stored : indices.as<typename decltype(tag)::type>()) {
      int64_t position = whole(stored).value_or(depth);
      const bool is_inside = position >= lowest && position < depth;
      if (is_inside && position < 0) position += depth;
      positions.push_back(is_inside ? position : kNowhere);
    }
  });
  return positions;
}

void run_one_hot(const KernelCall& call) {
  const TensorView& indices = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += output.rank();
  const int64_t depth = output.dims[static_cast<size_t>(axis)];
  int64_t inner = 1;
  for (int64_t inner_axis = axis + 1; inner_axis < output.rank(); ++inner_axis) {
    inner *= output.dims[static_cast<size_t>(inner_axis)];
  }
  const std::pmr::vector<int64_t> positions = positions_of(call, depth);
  visit_size(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto values = call.inputs[2].as<T>();
    const auto target = output.as<T>();
    std::fill(target.begin(), target.end(), values[0]);
    for (int64_t index = 0; index < indices.elements; ++index) {
      const int64_t position = positions[static_cast<size_t>(index)];
      if (position == kNowhere) continue;
      target[static_cast<size_t>((index / inner * depth + position) * inner + index % inner)] =
          values[1];
    }
  });
}

constexpr TypeSet kCountTypes =
    kIntegerTypes | TypeSet{DataType::Float16, DataType::Float32, DataType::Float64};

}  // namespace

std::vector<Op> one_hot_ops() {
  return {
      {.name = "OneHot",
       .versions = {9, 11, 28},
       .inputs = {{"indices", "T1"}, {"depth", "T2"}, {"values", "T3"}},
       .outputs = {{"output", "T3"}},
       .type_variables = {{"T1", kCountTypes}, {"T2", kCountTypes}, {"T3", kAllTypesAndStrings}},
       .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}},
       .infer = infer_one_hot,
       .flops = no_flops,
       .kernel = run_one_hot}};
}

}  // namespace tessera::ops
