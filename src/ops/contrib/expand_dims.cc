// ExpandDims and UnfoldTensor: views with another axis. TorchEmbedding: rows of a table.
#include <algorithm>
#include <cstring>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

void infer_expand_dims(InferContext& context) {
  const Shape* place = context.shape(1);
  if (place != nullptr && is_known(*place) && product(*place) != Dim(1)) {
    context.fail_input(1, "expected one axis, found shape [" + text(*place) + "]");
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  const auto rank = static_cast<int64_t>(shape->size()) + 1;
  const auto axis = integer_list(context, 1);
  if (!axis) return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  Shape expanded = *shape;
  expanded.insert(expanded.begin() + context.normalized_axis(axis->front(), rank), Dim(1));
  context.set_output(0, context.element(0), expanded);
}

// The axis, length and distance of the slices.
struct Unfolding {
  int64_t axis = 0;
  int64_t size = 1;
  int64_t step = 1;
};

Unfolding unfolding_of(const Node& node, int64_t rank) {
  Unfolding unfolding = {.axis = node.attributes.get_int("dim"),
                         .size = node.attributes.get_int("size"),
                         .step = node.attributes.get_int("step")};
  if (unfolding.axis < 0) unfolding.axis += std::max<int64_t>(1, rank);
  return unfolding;
}

void infer_unfold(InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  if (attributes.get_int("size") < 1 || attributes.get_int("step") < 1) {
    context.fail("expected 'size' and 'step' of at least 1, found " +
                 std::to_string(attributes.get_int("size")) + " and " +
                 std::to_string(attributes.get_int("step")));
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  const auto rank = static_cast<int64_t>(shape->size());
  context.normalized_axis(attributes.get_int("dim"), rank);
  const Unfolding unfolding = unfolding_of(context.node(), rank);
  Shape unfolded = *shape;
  Dim& dim = unfolded[static_cast<size_t>(unfolding.axis)];
  if (dim.is_known() && dim.value() < unfolding.size) {
    context.fail_input(0, "expected at least " + std::to_string(unfolding.size) +
                              " elements along axis " + std::to_string(unfolding.axis) +
                              " as attribute 'size' says, found [" + text(*shape) + "]");
  }
  dim = add(floor_divide(subtract(dim, unfolding.size), unfolding.step), 1);
  unfolded.emplace_back(unfolding.size);
  context.set_output(0, context.element(0), unfolded);
}

void run_unfold(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Unfolding unfolding = unfolding_of(call.node, call.inputs[0].rank());
  StridedView view = dense_view(call.inputs[0].dims, &call.scratch);
  const auto axis = static_cast<size_t>(unfolding.axis);
  view.dims[axis] = call.outputs[0].dims[axis];
  view.dims.push_back(unfolding.size);
  view.strides.push_back(view.strides[axis]);
  // With a single slice, the step may exceed what a product of strides can hold.
  view.strides[axis] *= view.dims[axis] == 1 ? 1 : unfolding.step;
  copy_view(call, view);
}

constexpr size_t kTorchIndices = 1;

void infer_torch_embedding(InferContext& context) {
  check_rank(context, 0, 2);
  const Shape* table = context.shape(0);
  const Shape* indices = context.shape(kTorchIndices);
  if (table == nullptr || indices == nullptr) return context.set_output(0, context.element(0));
  Shape output = *indices;
  output.push_back(table->back());
  context.set_output(0, context.element(0), output);
}

// padding_idx and scale_grad_by_freq matter to gradients only.
void run_torch_embedding(const KernelCall& call) {
  const TensorView& table = call.inputs[0];
  const TensorView& indices = call.inputs[kTorchIndices];
  if (call.outputs[0].elements == 0) return;
  const int64_t row_bytes = table.dims[1] * element_bytes(table.type);
  call.pool.parallel_for(indices.elements, row_grain(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t index = integer_at(indices, row);
      if (index < 0 || index >= table.dims[0]) {
        call.fail("expected an index in [0, " + std::to_string(table.dims[0]) + "), found " +
                  std::to_string(index));
      }
      std::memcpy(static_cast<char*>(call.outputs[0].data) + row * row_bytes,
                  static_cast<const char*>(table.data) + index * row_bytes,
                  static_cast<size_t>(row_bytes));
    }
  });
}

}  // namespace

std::vector<Op> expand_dims_ops() {
  return {{.name = "ExpandDims",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T"}, {"axis", "tensor(int32)"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int32)", {DataType::Int32}}},
           .traits = kView,
           .infer = infer_expand_dims,
           .flops = no_flops,
           .kernel = run_view},
          {.name = "UnfoldTensor",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}},
           .attributes = {{"dim", AttributeKind::Int, int64_t{-1}},
                          {"size", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"step", AttributeKind::Int, int64_t{1}}},
           .infer = infer_unfold,
           .flops = no_flops,
           .kernel = run_unfold},
          {.name = "TorchEmbedding",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"weight", "T"},
                      {"indices", "tensor(int64)"},
                      {"padding_idx", "tensor(int64)", Arity::Optional},
                      {"scale_grad_by_freq", "tensor(bool)", Arity::Optional}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kNumericTypes},
                              {"tensor(int64)", kInt64Type},
                              {"tensor(bool)", kBoolType}},
           .infer = infer_torch_embedding,
           .flops = no_flops,
           .kernel = run_torch_embedding}};
}

}  // namespace tessera::ops
