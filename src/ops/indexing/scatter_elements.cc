// ScatterElements: a copy of the data in which every update replaces, or is combined with, the
// element that its own index along one axis selects. gather_elements.cc is its inverse. Scatter is
// its older name.
#include "ops/check_shape.h"
#include "ops/index_reader.h"
#include "ops/indexing/element_indices.h"
#include "ops/indexing/scatter_reduction.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_scatter_elements(InferContext& context) {
  check_reduction(context);
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* updates = context.shape(2);
  if (data != nullptr && indices != nullptr) check_element_indices(context, *data, *indices);
  if (indices != nullptr && updates != nullptr && !can_be_equal(*indices, *updates)) {
    context.fail_input(
        2, "expected the shape of the indices, " + text(*indices) + ", found " + text(*updates));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_scatter_elements(const KernelCall& call) {
  run_scatter(call, [&](const auto& put) {
    const TensorView& indices = call.inputs[1];
    const IndexedAxis axis = indexed_axis(call);
    Odometer odometer(axis.view, 0);
    for (int64_t index = 0; index < indices.elements; ++index, odometer.advance()) {
      put(odometer.offset() + index_at(call, indices, index, axis.dim) * axis.stride, index);
    }
  });
}

}  // namespace

std::vector<Op> scatter_elements_ops() {
  return {{.name = "ScatterElements",
           .versions = {11, 13, 16, 18},
           .inputs = {{"data", "T"}, {"indices", "Tind"}, {"updates", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}},
                          {"reduction", AttributeKind::String, std::string("none"), 16}},
           .infer = infer_scatter_elements,
           .flops = no_flops,
           .kernel = run_scatter_elements},
          {.name = "Scatter",
           .versions = {9},
           .inputs = {{"data", "T"}, {"indices", "Tind"}, {"updates", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
           .infer = infer_scatter_elements,
           .flops = no_flops,
           .kernel = run_scatter_elements,
           .last_version = 10}};
}

}  // namespace tessera::ops
