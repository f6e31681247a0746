// GatherElements: every element of the output has its own index along one axis.
#include "ops/index_reader.h"
#include "ops/indexing/element_indices.h"
#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_gather_elements(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr) check_element_indices(context, *data, *indices);
  context.set_output(0, context.element(0), context.input(1).type.shape);
}

void run_gather_elements(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  if (indices.elements == 0) return;
  const IndexedAxis axis = indexed_axis(call);
  visit_size(data.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = data.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(indices.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      Odometer odometer(axis.view, begin);
      for (int64_t index = begin; index < end; ++index, odometer.advance()) {
        target[index] =
            source[odometer.offset() + index_at(call, indices, index, axis.dim) * axis.stride];
      }
    });
  });
}

}  // namespace

std::vector<Op> gather_elements_ops() {
  return {{.name = "GatherElements",
           .versions = {11, 13},
           .inputs = {{"data", "T"}, {"indices", "Tind"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
           .infer = infer_gather_elements,
           .flops = no_flops,
           .kernel = run_gather_elements}};
}

}  // namespace tessera::ops
