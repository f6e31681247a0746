// NonZero: the indices of the elements that are not 0. Their number is known only at run time.
#include <memory_resource>
#include <vector>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// Calls visit(is_nonzero) for each element in order. NaN is nonzero, -0 is zero.
template <class Visit>
void visit_elements(DataType type, const void* data, int64_t count, const Visit& visit) {
  const auto visit_as = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = static_cast<const T*>(data);
    for (int64_t index = 0; index < count; ++index) {
      visit(static_cast<compute_t<T>>(elements[index]) != 0);
    }
  };
  if (type == DataType::Bool) return visit_as(TypeTag<uint8_t>{});
  visit_numeric(type, visit_as);
}

void infer_non_zero(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) {
    return context.set_output(0, DataType::Int64,
                              Shape{unknown_dim(context, 0, 0), unknown_dim(context, 0, 1)});
  }
  Dim found = unknown_dim(context, 0, 1);
  if (const Tensor* input = context.constant(0)) {
    int64_t count = 0;
    visit_elements(input->type(), input->data(), element_count(input->dims()),
                   [&](bool is_non_zero) { count += is_non_zero ? 1 : 0; });
    found = count;
  }
  context.set_output(0, DataType::Int64, Shape{static_cast<int64_t>(shape->size()), found});
}

// One row of indices per axis; elements in row-major order.
void run_non_zero(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const auto rank = static_cast<size_t>(input.rank());
  const auto indices = call.outputs[0].as<int64_t>();
  if (indices.empty()) return;
  const size_t found = indices.size() / rank;
  std::pmr::vector<int64_t> coordinates(rank, 0, &call.scratch);
  size_t column = 0;
  visit_elements(input.type, input.data, input.elements, [&](bool is_non_zero) {
    if (is_non_zero) {
      for (size_t axis = 0; axis < rank; ++axis) indices[axis * found + column] = coordinates[axis];
      ++column;
    }
    for (size_t axis = rank; axis-- > 0;) {
      if (++coordinates[axis] < input.dims[axis]) break;
      coordinates[axis] = 0;
    }
  });
}

}  // namespace

std::vector<Op> non_zero_ops() {
  return {{.name = "NonZero",
           .versions = {9, 13},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(int64)"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .traits = kSizedByData,
           .infer = infer_non_zero,
           .flops = no_flops,
           .kernel = run_non_zero}};
}

}  // namespace tessera::ops
