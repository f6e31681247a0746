// Trilu: the upper or lower triangle of matrices; the rest is zero.
#include <algorithm>

#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_trilu(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape != nullptr && shape->size() < 2) {
    context.fail_input(0, "expected rank 2 or more, found shape " + text(*shape));
  }
  if (context.has_input(1)) {
    const Shape* diagonal = context.shape(1);
    if (diagonal != nullptr && is_known(*diagonal) && product(*diagonal) != Dim(1)) {
      context.fail_input(1, "expected one element, found shape " + text(*diagonal));
    }
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_trilu(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const int64_t width = input.dims.back();
  const int64_t height = input.dims[input.dims.size() - 2];
  // Diagonals beyond the corners are all equivalent.
  const int64_t wanted = call.has_input(1) ? integer_at(call.inputs[1], 0) : 0;
  const int64_t diagonal = std::clamp(wanted, -height - 1, width + 1);
  const bool is_upper = call.node.attributes.get_int("upper") != 0;
  visit_size(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    const int64_t grain = std::max<int64_t>(1, 16384 / width);
    call.pool.parallel_for(input.elements / width, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // The first column of the upper part: the diagonal, or the column after it for the lower
        // triangle.
        const int64_t edge = row % height + diagonal + (is_upper ? 0 : 1);
        for (int64_t column = 0; column < width; ++column) {
          const bool is_kept = is_upper == (column >= edge);
          target[row * width + column] = is_kept ? source[row * width + column] : T(0);
        }
      }
    });
  });
}

}  // namespace

std::vector<Op> trilu_ops() {
  Op onnx = {.name = "Trilu",
             .versions = {14},
             .inputs = {{"input", "T"}, {"k", "tensor(int64)", Arity::Optional}},
             .outputs = {{"output", "T"}},
             .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
             .attributes = {{"upper", AttributeKind::Int, int64_t{1}}},
             .infer = infer_trilu,
             .flops = no_flops,
             .kernel = run_trilu};
  // ONNX Runtime had it before ONNX.
  Op contributed = onnx;
  contributed.domain = kMicrosoftDomain;
  contributed.versions = {1};
  contributed.inputs[0].name = "X";
  contributed.outputs[0].name = "Y";
  contributed.type_variables[0].types = kAllTypes;
  return {onnx, contributed};
}

}  // namespace tessera::ops
