// GatherND: slices of the data, each selected by a tuple of indices. That of com.microsoft also
// takes indices of int32. scatter_nd.cc is its inverse.
#include <algorithm>
#include <cstring>

#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

int64_t batch_dims(const Node& node) {
  const int64_t* const given = node.attributes.find_int("batch_dims");
  return given == nullptr ? 0 : *given;
}

void check_batch(const InferContext& context, const Shape& data, const Shape& indices) {
  const int64_t batch = batch_dims(context.node());
  const auto smaller_rank = static_cast<int64_t>(std::min(data.size(), indices.size()));
  if (batch < 0 || batch >= smaller_rank) {
    context.fail("expected batch_dims in [0, " + std::to_string(smaller_rank) + "), found " +
                 std::to_string(batch));
  }
  for (size_t axis = 0; axis < static_cast<size_t>(batch); ++axis) {
    if (data[axis].is_known() && indices[axis].is_known() && data[axis] != indices[axis]) {
      context.fail_input(1, "expected the batch dimensions of the data's " + text(data) +
                                ", found shape " + text(indices));
    }
  }
}

void infer_gather_nd(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data == nullptr || indices == nullptr) return context.set_output(0, context.element(0));
  check_batch(context, *data, *indices);
  const Dim& tuple = indices->back();
  if (!tuple.is_known()) return context.set_output(0, context.element(0));
  const int64_t batch = batch_dims(context.node());
  const int64_t max_length = static_cast<int64_t>(data->size()) - batch;
  if (tuple.value() < 1 || tuple.value() > max_length) {
    context.fail_input(1, "expected tuples of 1 to " + std::to_string(max_length) +
                              " indices in the last dimension, found shape " + text(*indices));
  }
  Shape output(indices->begin(), indices->end() - 1);
  output.insert(output.end(), data->begin() + batch + tuple.value(), data->end());
  context.set_output(0, context.element(0), output);
}

void run_gather_nd(const KernelCall& call) {
  const TensorView& data = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t batch = batch_dims(call.node);
  const int64_t tuple = indices.dims.back();
  const int64_t slices = indices.elements / tuple;
  const int64_t slice_bytes = output.elements / slices * element_bytes(data.type);
  int64_t batches = 1;
  for (const int64_t dim : indices.dims.first(static_cast<size_t>(batch))) batches *= dim;
  const auto picked = data.dims.subspan(static_cast<size_t>(batch), static_cast<size_t>(tuple));
  // If the selected dimensions have no elements, the first index is already out of range.
  int64_t slices_per_batch = 1;
  for (const int64_t dim : picked) slices_per_batch *= dim;
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / slice_bytes);
  call.pool.parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      int64_t source = 0;
      for (int64_t position = 0; position < tuple; ++position) {
        const int64_t dim = picked[static_cast<size_t>(position)];
        source = source * dim + index_at(call, indices, slice * tuple + position, dim);
      }
      source += slice / (slices / batches) * slices_per_batch;
      std::memcpy(static_cast<char*>(output.data) + slice * slice_bytes,
                  static_cast<const char*>(data.data) + source * slice_bytes,
                  static_cast<size_t>(slice_bytes));
    }
  });
}

}  // namespace

std::vector<Op> gather_nd_ops() {
  Op gather = {.name = "GatherND",
               .versions = {11, 12, 13},
               .inputs = {{"data", "T"}, {"indices", "tensor(int64)"}},
               .outputs = {{"output", "T"}},
               .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
               .attributes = {{"batch_dims", AttributeKind::Int, int64_t{0}, 12}},
               .infer = infer_gather_nd,
               .flops = no_flops,
               .kernel = run_gather_nd};
  Op older = gather;
  older.domain = kMicrosoftDomain;
  older.versions = {1};
  older.inputs.back().type_variable = "Tind";
  older.type_variables.back() = {"Tind", kIndexTypes};
  older.attributes.clear();
  return {gather, older};
}

}  // namespace tessera::ops
