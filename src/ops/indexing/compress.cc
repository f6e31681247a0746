// Compress: the slices of the input along an axis for which a condition holds. Their number is
// known only at run time.
#include <algorithm>
#include <cstring>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

int64_t count_true(const void* condition, int64_t count) {
  const auto* flags = static_cast<const uint8_t*>(condition);
  return count - std::count(flags, flags + count, uint8_t{0});
}

void infer_compress(InferContext& context) {
  check_one_dimension(context, 1);
  const bool has_axis = context.node().attributes.has("axis");
  const Shape* input = context.shape(0);
  if (input == nullptr) {
    std::optional<Shape> flat;
    if (!has_axis) flat = Shape{unknown_dim(context, 0, 0)};
    return context.set_output(0, context.element(0), flat);
  }
  Shape output = *input;
  size_t axis = 0;
  if (has_axis) {
    axis = static_cast<size_t>(context.normalized_axis(context.node().attributes.get_int("axis"),
                                                       static_cast<int64_t>(input->size())));
  } else {
    output = {Dim(0)};
    const bool is_counted = is_known(*input);
    if (is_counted) output[0] = element_count(dims_from(*input));
  }
  const Dim length = has_axis || is_known(*input) ? output[axis] : unknown_dim(context, 0, 0);
  output[axis] = unknown_dim(context, 0, axis);
  if (const Tensor* flags = context.constant(1)) {
    const int64_t count = element_count(flags->dims());
    if (length.is_known() && count > length.value()) {
      context.fail_input(1, "expected at most " + std::to_string(length.value()) +
                                " elements, found " + std::to_string(count));
    }
    output[axis] = count_true(flags->data(), count);
  }
  context.set_output(0, context.element(0), output);
}

// Slices of one element: without a branch for each, which would often be predicted wrongly.
template <class T>
void compress_elements(std::span<const T> input, std::span<const uint8_t> condition, int64_t length,
                       std::span<T> output) {
  size_t count = 0;
  for (const T* line = input.data(); line != input.data() + input.size(); line += length) {
    // Behind the last selected element, there is no room.
    for (size_t index = 0; index < condition.size() && count < output.size(); ++index) {
      output[count] = line[index];
      count += condition[index] != 0 ? 1 : 0;
    }
  }
}

void run_compress(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const auto condition = call.inputs[1].as<uint8_t>();
  // A flattened input has one axis, and its slices are single elements.
  int64_t length = input.elements;
  int64_t slice_bytes = element_bytes(input.type);
  if (call.node.attributes.has("axis")) {
    int64_t axis = call.node.attributes.get_int("axis");
    if (axis < 0) axis += input.rank();
    length = input.dims[static_cast<size_t>(axis)];
    for (int64_t inner_axis = axis + 1; inner_axis < input.rank(); ++inner_axis) {
      slice_bytes *= input.dims[static_cast<size_t>(inner_axis)];
    }
  }
  if (slice_bytes == element_bytes(input.type)) {
    return visit_size(input.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      compress_elements<T>(input.as<T>(), condition, length, output.as<T>());
    });
  }
  const int64_t line_bytes = length * slice_bytes;
  const int64_t lines = input.elements * element_bytes(input.type) / line_bytes;
  auto* target = static_cast<char*>(output.data);
  for (int64_t line = 0; line < lines; ++line) {
    const char* source = static_cast<const char*>(input.data) + line * line_bytes;
    for (size_t index = 0; index < condition.size(); ++index) {
      if (condition[index] == 0) continue;
      std::memcpy(target, source + static_cast<int64_t>(index) * slice_bytes,
                  static_cast<size_t>(slice_bytes));
      target += slice_bytes;
    }
  }
}

}  // namespace

std::vector<Op> compress_ops() {
  return {{.name = "Compress",
           .versions = {9, 11, 28},
           .inputs = {{"input", "T"}, {"condition", "T1"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"T1", kBoolType}},
           // Without an axis, the input is flattened.
           .attributes = {{"axis", AttributeKind::Int, std::nullopt}},
           .infer = infer_compress,
           .flops = no_flops,
           .kernel = run_compress}};
}

}  // namespace tessera::ops
