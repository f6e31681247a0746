// MaxUnpool: puts the results of a MaxPool back where its Indices say, among zeros.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/check_shape.h"
#include "ops/convolution/window.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr size_t kUnpoolShape = 2;

struct UnpoolWindow {
  AxisLengths kernel;
  AxisLengths strides;
  AxisLengths pads;  // those at the beginnings, then those at the ends
};

UnpoolWindow unpool_window(const Node& node, size_t axes) {
  return {read_lengths(node, "kernel_shape", axes, 1, 1), read_lengths(node, "strides", axes, 1, 1),
          read_lengths(node, "pads", 2 * axes, 0, 0)};
}

// The shape of the pooled tensor that the window implies. fail()s if padding leaves nothing.
Shape unpooled_shape(const InferContext& context, const Shape& input) {
  const size_t axes = input.size() - 2;
  const UnpoolWindow window = unpool_window(context.node(), axes);
  Shape shape = {input[0], input[1]};
  for (size_t axis = 0; axis < axes; ++axis) {
    // A single sum, so that a symbol stays unchanged if the rest is zero.
    const int64_t rest =
        window.kernel[axis] - window.strides[axis] - window.pads[axis] - window.pads[axis + axes];
    const Dim length = add(multiply(input[axis + 2], window.strides[axis]), rest);
    if (length.is_known() && length.value() < 0) {
      context.fail("expected padding that leaves an output along spatial axis " +
                   std::to_string(axis) + ", found a length of " + length.text() +
                   " from an input of " + input[axis + 2].text());
    }
    shape.push_back(length);
  }
  return shape;
}

// The output's shape if the node gives it: at least the one that the window implies.
Shape given_shape(const InferContext& context, const Shape& unpooled) {
  const std::optional<int64_t> length = list_length(context, kUnpoolShape);
  if (length && *length != static_cast<int64_t>(unpooled.size())) {
    context.fail_input(kUnpoolShape, "expected " + std::to_string(unpooled.size()) +
                                         " sizes, found " + std::to_string(*length));
  }
  const auto sizes = dim_list(context, kUnpoolShape);
  if (!sizes) {
    return *unknown_shape(context, 0, static_cast<int64_t>(unpooled.size()));
  }
  for (size_t axis = 0; axis < sizes->size(); ++axis) {
    const Dim& size = (*sizes)[axis];
    const Dim& least = unpooled[axis];
    if (!size.is_known() || !least.is_known()) continue;
    if (size.value() < least.value() || (axis < 2 && size != least)) {
      context.fail_input(kUnpoolShape, "expected the batch and channels of " + text(unpooled) +
                                           " and at least its other sizes, found " + text(*sizes));
    }
  }
  return *sizes;
}

void infer_max_unpool(InferContext& context) {
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0));
  if (input == nullptr) return;
  check_spatial_rank(context.node(), input->size());
  check_shape(context, 1, *input);
  Shape output = unpooled_shape(context, *input);
  if (context.has_input(kUnpoolShape)) output = given_shape(context, output);
  context.set_output(0, context.element(0), std::move(output));
}

// The number of elements between neighbours along each axis of the output. Axes of the tensor to
// which the indices belong, `dims`, may be shorter than those of the output.
struct UnpoolPlace {
  std::span<const int64_t> dims;
  std::span<const int64_t> strides;

  int64_t offset_of(int64_t index) const {
    int64_t offset = 0;
    for (size_t axis = dims.size(); axis-- > 0;) {
      offset += index % dims[axis] * strides[axis];
      index /= dims[axis];
    }
    return offset;
  }
};

void run_max_unpool(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  std::memset(output.data, 0, static_cast<size_t>(output.elements * element_bytes(output.type)));
  const size_t axes = input.dims.size() - 2;
  const UnpoolWindow window = unpool_window(call.node, axes);
  std::pmr::vector<int64_t> dims(input.dims.begin(), input.dims.end(), &call.scratch);
  for (size_t axis = 0; axis < axes; ++axis) {
    dims[axis + 2] = (dims[axis + 2] - 1) * window.strides[axis] + window.kernel[axis] -
                     window.pads[axis] - window.pads[axis + axes];
  }
  const std::pmr::vector<int64_t> strides = dense_strides(output.dims, &call.scratch);
  const UnpoolPlace place = {dims, strides};
  const bool is_same = std::ranges::equal(dims, output.dims);
  const int64_t elements = element_count(dims);
  const auto indices = call.inputs[1].as<int64_t>();
  visit_size(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto source = input.as<T>();
    T* target = output.as<T>().data();
    // In order, because the last one of equal indices counts.
    for (size_t index = 0; index < source.size(); ++index) {
      const int64_t position = indices[index];
      if (position < 0 || position >= elements) {
        call.fail("expected an index in [0, " + std::to_string(elements) + "), found " +
                  std::to_string(position));
      }
      target[is_same ? position : place.offset_of(position)] = source[index];
    }
  });
}

}  // namespace

std::vector<Op> max_unpool_ops() {
  return {{.name = "MaxUnpool",
           .versions = {9, 11, 22},
           .inputs = {{"X", "T1"}, {"I", "T2"}, {"output_shape", "T2", Arity::Optional}},
           .outputs = {{"output", "T1"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}},
           .attributes = {{"kernel_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .infer = infer_max_unpool,
           .flops = no_flops,
           .kernel = run_max_unpool}};
}

}  // namespace tessera::ops
