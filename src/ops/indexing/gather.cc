// Gather: slices of the data along one axis, selected by indices.
#include <algorithm>
#include <cstring>

#include "ops/evaluate.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// Tracks elements of shape lists, as in Gather(Shape(x), 1).
void follow_gathered(InferContext& context) {
  const std::vector<Dim>* data = propagated_elements(context, 0);
  const auto& indices = context.input(1).elements;
  if (data == nullptr || !indices || context.shape(0)->size() != 1) return;
  const auto count = static_cast<int64_t>(data->size());
  std::vector<Dim> elements;
  for (const Dim& location : *indices) {
    const int64_t index = location.is_known() ? location.value() : count;
    // Out of range is an error only if the node is run.
    if (index < -count || index >= count) return;
    elements.push_back((*data)[static_cast<size_t>(index < 0 ? index + count : index)]);
  }
  context.set_elements(0, std::move(elements));
}

void infer_gather(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  int64_t axis = context.node().attributes.get_int("axis");
  if (data != nullptr) axis = context.normalized_axis(axis, static_cast<int64_t>(data->size()));
  if (data == nullptr || indices == nullptr) return context.set_output(0, context.element(0));
  Shape output(data->begin(), data->begin() + axis);
  output.insert(output.end(), indices->begin(), indices->end());
  output.insert(output.end(), data->begin() + axis + 1, data->end());
  context.set_output(0, context.element(0), output);
  follow_gathered(context);
}

void run_gather(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += data.rank();
  int64_t inner_bytes = element_bytes(data.type);
  for (int64_t inner_axis = axis + 1; inner_axis < data.rank(); ++inner_axis) {
    inner_bytes *= data.dims[static_cast<size_t>(inner_axis)];
  }
  const int64_t dim = data.dims[static_cast<size_t>(axis)];
  const int64_t slices = output.elements * element_bytes(data.type) / inner_bytes;
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / inner_bytes);
  call.pool.parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      const int64_t outer = slice / indices.elements;
      const int64_t index = index_at(call, indices, slice % indices.elements, dim);
      std::memcpy(static_cast<char*>(output.data) + slice * inner_bytes,
                  static_cast<const char*>(data.data) + (outer * dim + index) * inner_bytes,
                  static_cast<size_t>(inner_bytes));
    }
  });
}

}  // namespace

std::vector<Op> gather_ops() {
  return {{.name = "Gather",
           .versions = {1, 11, 13},
           .inputs = {{"data", "T"}, {"indices", "Tind"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
           .infer = infer_gather,
           .flops = no_flops,
           .kernel = run_gather}};
}

}  // namespace tessera::ops
