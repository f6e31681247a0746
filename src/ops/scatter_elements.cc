// ScatterElements: a copy of the data in which every update replaces, or is combined with, the
// element that its own index along one axis picks. gather_elements.cc is its inverse.
#include <cstring>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/scatter_reduction.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

void check_indices(const InferContext& context, const Shape& data, const Shape& indices) {
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(data.size())));
  bool is_inside = indices.size() == data.size();
  for (size_t place = 0; is_inside && place < data.size(); ++place) {
    const bool is_known_here = data[place].is_known() && indices[place].is_known();
    is_inside = place == axis || !is_known_here || indices[place].value() <= data[place].value();
  }
  if (!is_inside) {
    context.fail_input(1, "expected at most the data's dimensions " + text(data) +
                              " outside axis " + std::to_string(axis) + ", found shape " +
                              text(indices));
  }
}

void check_updates(const InferContext& context, const Shape& indices, const Shape& updates) {
  bool is_same = indices.size() == updates.size();
  for (size_t place = 0; is_same && place < indices.size(); ++place) {
    is_same = !indices[place].is_known() || !updates[place].is_known() ||
              indices[place] == updates[place];
  }
  if (!is_same) {
    context.fail_input(
        2, "expected the shape of the indices, " + text(indices) + ", found " + text(updates));
  }
}

void infer_scatter_elements(InferContext& context) {
  check_reduction(context);
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* updates = context.shape(2);
  if (data != nullptr && indices != nullptr) check_indices(context, *data, *indices);
  if (indices != nullptr && updates != nullptr) check_updates(context, *indices, *updates);
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_scatter_elements(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const TensorView& updates = call.inputs[2];
  std::memcpy(call.outputs[0].data, data.data,
              static_cast<size_t>(data.elements * element_bytes(data.type)));
  if (updates.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += data.rank();
  const int64_t dim = data.dims[static_cast<size_t>(axis)];
  StridedView view = dense_view(data.dims);
  const int64_t stride = view.strides[static_cast<size_t>(axis)];
  view.dims.assign(indices.dims.begin(), indices.dims.end());
  view.strides[static_cast<size_t>(axis)] = 0;
  const Reduction reduction = *reduction_of(call.node);
  // One after the other: two indices may name one element.
  visit_scattered(data.type, reduction, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = updates.as<T>().data();
    T* to = call.outputs[0].as<T>().data();
    Odometer odometer(view, 0);
    for (int64_t index = 0; index < indices.elements; ++index, odometer.advance()) {
      T& element = to[odometer.offset() + index_at(call, indices, index, dim) * stride];
      element = combined(reduction, element, from[index]);
    }
  });
}

}  // namespace

std::vector<Op> scatter_elements_ops() {
  return {{.name = "ScatterElements",
           .versions = {11, 13, 16, 18},
           .inputs = {{"data", "T"}, {"indices", "Tind"}, {"updates", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypes}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}},
                          {"reduction", AttributeKind::String, std::string("none"), 16}},
           .infer = infer_scatter_elements,
           .flops = no_flops,
           .kernel = run_scatter_elements}};
}

}  // namespace tessera::ops
