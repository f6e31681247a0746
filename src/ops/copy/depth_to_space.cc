// DepthToSpace and SpaceToDepth: move blocks of channels into the spatial plane and back. In mode
// DCR, the block's row and column are the outer part of the channel; in mode CRD, the inner part.
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

// Checks the node and returns its block size.
int64_t checked_block(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t block = attributes.get_int("blocksize");
  int64_t area = 0;
  if (block < 1 || __builtin_mul_overflow(block, block, &area)) {
    context.fail("expected a blocksize of at least 1 whose square fits 64 bits, found " +
                 std::to_string(block));
  }
  if (const std::string* mode = attributes.find_string("mode")) {
    if (*mode != "DCR" && *mode != "CRD") {
      context.fail("expected mode 'DCR' or 'CRD', found '" + *mode + "'");
    }
  }
  const Shape* shape = context.shape(0);
  if (shape != nullptr && shape->size() != 4) {
    context.fail_input(0, "expected rank 4, found shape " + text(*shape));
  }
  return block;
}

Dim divided(const InferContext& context, size_t axis, int64_t divisor) {
  const Dim& dim = (*context.shape(0))[axis];
  if (dim.is_known() && dim.value() % divisor != 0) {
    context.fail_input(0, "expected dimension " + std::to_string(axis) + " to be a multiple of " +
                              std::to_string(divisor) + ", found shape " + text(*context.shape(0)));
  }
  return floor_divide(dim, divisor);
}

void infer_depth_to_space(InferContext& context) {
  const int64_t block = checked_block(context);
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    return context.set_output(0, context.element(0), unknown_shape(context, 0, 4));
  }
  context.set_output(0, context.element(0),
                     Shape{(*shape)[0], divided(context, 1, block * block),
                           multiply((*shape)[2], block), multiply((*shape)[3], block)});
}

void infer_space_to_depth(InferContext& context) {
  const int64_t block = checked_block(context);
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    return context.set_output(0, context.element(0), unknown_shape(context, 0, 4));
  }
  context.set_output(0, context.element(0),
                     Shape{(*shape)[0], multiply((*shape)[1], block * block),
                           divided(context, 2, block), divided(context, 3, block)});
}

bool is_depth_outermost(const Node& node) {
  const std::string* mode = node.attributes.find_string("mode");
  return mode != nullptr && *mode == "CRD";
}

void run_depth_to_space(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t block = call.node.attributes.get_int("blocksize");
  const int64_t depth = output.dims[1];
  const int64_t height = input.dims[2];
  const int64_t width = input.dims[3];
  const int64_t plane = height * width;
  const bool is_outer = is_depth_outermost(call.node);
  const int64_t depth_stride = plane * (is_outer ? block * block : 1);
  const int64_t column_stride = plane * (is_outer ? 1 : depth);
  StridedView view(&call.scratch);
  view.dims = {input.dims[0], depth, height, block, width, block};
  view.strides = {input.dims[1] * plane, depth_stride, width, column_stride * block, 1,
                  column_stride};
  copy_view(call, view);
}

void run_space_to_depth(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t block = call.node.attributes.get_int("blocksize");
  const int64_t depth = input.dims[1];
  const int64_t width = input.dims[3];
  const int64_t plane = input.dims[2] * width;
  StridedView view(&call.scratch);
  if (is_depth_outermost(call.node)) {
    view.dims = {input.dims[0], depth, block, block, output.dims[2], output.dims[3]};
    view.strides = {depth * plane, plane, width, 1, width * block, block};
  } else {
    view.dims = {input.dims[0], block, block, depth, output.dims[2], output.dims[3]};
    view.strides = {depth * plane, width, 1, plane, width * block, block};
  }
  copy_view(call, view);
}

Op block_op(const char* name, std::vector<int> versions, int first_mode_version, InferRule infer,
            ReferenceKernel kernel) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{"input", "T"}},
          .outputs = {{"output", "T"}},
          .type_variables = {{"T", kAllTypesAndStrings}},
          .attributes = {{"blocksize", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                         {"mode", AttributeKind::String, std::string("DCR"), first_mode_version}},
          .infer = infer,
          .flops = no_flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> depth_to_space_ops() {
  Op to_space =
      block_op("DepthToSpace", {1, 11, 13, 28}, 11, infer_depth_to_space, run_depth_to_space);
  to_space.traits = kBoundsMagnitude;
  return {to_space,
          block_op("SpaceToDepth", {1, 13, 28}, 28, infer_space_to_depth, run_space_to_depth)};
}

}  // namespace tessera::ops
