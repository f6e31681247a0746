// Shape, with attributes `start` and `end` since version 15, and Size.
#include <algorithm>
#include <limits>

#include "ops/evaluate.h"
#include "ops/shape_arithmetic.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// An axis counted from the front or the back, clamped to [0, rank].
int64_t clamped_axis(int64_t axis, int64_t rank) {
  return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
}

struct Cut {
  int64_t start = 0;
  int64_t length = 0;
};

Cut cut_of(const Node& node, int64_t rank) {
  const int64_t* start = node.attributes.find_int("start");
  const int64_t* end = node.attributes.find_int("end");
  Cut cut;
  cut.start = start != nullptr ? clamped_axis(*start, rank) : 0;
  cut.length = (end != nullptr ? clamped_axis(*end, rank) : rank) - cut.start;
  cut.length = std::max<int64_t>(0, cut.length);
  return cut;
}

void infer_shape(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    context.set_output(0, DataType::Int64, Shape{unknown_dim(context, 0, 0)});
    return;
  }
  const Cut cut = cut_of(context.node(), static_cast<int64_t>(shape->size()));
  context.set_output(0, DataType::Int64, Shape{cut.length});
  if (cut.length > kMaxShapeElements) return;
  const auto begin = shape->begin() + cut.start;
  context.set_elements(0, std::vector<Dim>(begin, begin + cut.length));
}

void run_shape(const KernelCall& call) {
  const std::span<const int64_t> dims = call.inputs[0].dims;
  const Cut cut = cut_of(call.node, static_cast<int64_t>(dims.size()));
  std::copy_n(dims.begin() + cut.start, cut.length, call.outputs[0].as<int64_t>().begin());
}

void infer_size(InferContext& context) {
  context.set_output(0, DataType::Int64, Shape{});
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return;
  std::optional<Dim> count = Dim(1);
  // A dimension of 0 makes the size 0, even if the product of the others overflows.
  if (std::find(shape->begin(), shape->end(), Dim(0)) != shape->end()) count = Dim(0);
  for (const Dim& dim : *shape) {
    if (count) count = multiply_elements(*count, dim);
  }
  if (count) context.set_elements(0, std::vector<Dim>{*count});
}

void run_size(const KernelCall& call) {
  call.outputs[0].as<int64_t>()[0] = call.inputs[0].elements;
}

Op shape_op(const char* name, const char* output, std::vector<int> versions, InferRule infer,
            ReferenceKernel kernel) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{"data", "T"}},
          .outputs = {{output, "T1"}},
          .type_variables = {{"T", kAllTypesAndStrings, small_types_since(19)}, {"T1", kInt64Type}},
          .infer = infer,
          .flops = no_flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> shape_ops() {
  Op shape = shape_op("Shape", "shape", {1, 13, 15, 19, 21, 23, 24, 25}, infer_shape, run_shape);
  shape.attributes = {{"start", AttributeKind::Int, int64_t{0}, 15},
                      {"end", AttributeKind::Int, std::nullopt, 15}};
  return {shape, shape_op("Size", "size", {1, 13, 19, 21, 23, 24, 25}, infer_size, run_size)};
}

}  // namespace tessera::ops
