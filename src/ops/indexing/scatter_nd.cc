// ScatterND: a copy of the data in which updates replace, or are combined with, slices selected by
// tuples of indices. gather_nd.cc is its inverse.
#include "ops/check_shape.h"
#include "ops/index_reader.h"
#include "ops/indexing/scatter_reduction.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// The shape that the updates must have.
Shape updates_shape(const InferContext& context, const Shape& data, const Shape& indices) {
  if (indices.empty()) context.fail_input(1, "expected rank 1 or more, found a scalar");
  const Dim& tuple = indices.back();
  if (tuple.value() < 1 || tuple.value() > static_cast<int64_t>(data.size())) {
    context.fail_input(1, "expected tuples of 1 to " + std::to_string(data.size()) +
                              " indices in the last dimension, found shape " + text(indices));
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + tuple.value(), data.end());
  return shape;
}

void infer_scatter_nd(InferContext& context) {
  check_reduction(context);
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* updates = context.shape(2);
  const bool is_tuple_known =
      indices != nullptr && (indices->empty() || indices->back().is_known());
  if (data != nullptr && is_tuple_known) {
    const Shape expected = updates_shape(context, *data, *indices);
    if (updates != nullptr && !can_be_equal(expected, *updates)) {
      context.fail_input(2, "expected shape " + text(expected) + ", found " + text(*updates));
    }
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_scatter_nd(const KernelCall& call) {
  run_scatter(call, [&](const auto& put) {
    const TensorView& indices = call.inputs[1];
    const int64_t tuple = indices.dims.back();
    const int64_t slices = indices.elements / tuple;
    const int64_t length = call.inputs[2].elements / slices;
    for (int64_t slice = 0; slice < slices; ++slice) {
      int64_t target = 0;
      for (int64_t position = 0; position < tuple; ++position) {
        const int64_t dim = call.inputs[0].dims[static_cast<size_t>(position)];
        target = target * dim + index_at(call, indices, slice * tuple + position, dim);
      }
      for (int64_t index = 0; index < length; ++index) {
        put(target * length + index, slice * length + index);
      }
    }
  });
}

}  // namespace

std::vector<Op> scatter_nd_ops() {
  return {{.name = "ScatterND",
           .versions = {11, 13, 16, 18},
           .inputs = {{"data", "T"}, {"indices", "tensor(int64)"}, {"updates", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .attributes = {{"reduction", AttributeKind::String, std::string("none"), 16}},
           .infer = infer_scatter_nd,
           .flops = no_flops,
           .kernel = run_scatter_nd}};
}

}  // namespace tessera::ops
