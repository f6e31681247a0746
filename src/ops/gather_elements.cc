// GatherElements: every element of the output picks its own index along one axis.
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int64_t kGrain = 4096;

void check_shapes(const InferContext& context, const Shape& data, const Shape& indices) {
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(data.size())));
  if (indices.size() != data.size()) {
    context.fail_input(1, "expected the rank of the data, " + std::to_string(data.size()) +
                              ", found shape " + text(indices));
  }
  for (size_t place = 0; place < data.size(); ++place) {
    const Dim& most = data[place];
    const Dim& dim = indices[place];
    if (place != axis && most.is_known() && dim.is_known() && dim.value() > most.value()) {
      context.fail_input(1, "expected at most the data's dimensions " + text(data) +
                                " outside axis " + std::to_string(axis) + ", found shape " +
                                text(indices));
    }
  }
}

void infer_gather_elements(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data != nullptr && indices != nullptr) check_shapes(context, *data, *indices);
  context.set_output(0, context.element(0), context.input(1).type.shape);
}

void run_gather_elements(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  if (indices.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += data.rank();
  const int64_t dim = data.dims[static_cast<size_t>(axis)];
  StridedView view = dense_view(data.dims);
  const int64_t stride = view.strides[static_cast<size_t>(axis)];
  view.dims.assign(indices.dims.begin(), indices.dims.end());
  view.strides[static_cast<size_t>(axis)] = 0;
  visit_size(data.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = data.as<T>().data();
    T* to = call.outputs[0].as<T>().data();
    call.pool.parallel_for(indices.elements, kGrain, [&](int64_t begin, int64_t end) {
      Odometer odometer(view, begin);
      for (int64_t index = begin; index < end; ++index, odometer.advance()) {
        to[index] = from[odometer.offset() + index_at(call, indices, index, dim) * stride];
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
           .type_variables = {{"T", kAllTypes}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
           .infer = infer_gather_elements,
           .flops = no_flops,
           .kernel = run_gather_elements}};
}

}  // namespace tessera::ops
