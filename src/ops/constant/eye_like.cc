// EyeLike: ones on a diagonal of a matrix of the input's shape, zeros elsewhere.
#include <algorithm>
#include <cstring>

#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_eye_like(InferContext& context) {
  const bool has_type = context.node().attributes.has("dtype");
  const DataType type =
      has_type ? element_type_of(context, "dtype", kAllTypes) : context.element(0);
  const Shape* shape = context.shape(0);
  if (shape != nullptr && shape->size() != 2) {
    context.fail_input(0, "expected a matrix, found shape " + text(*shape));
  }
  context.set_output(0, type, context.input(0).type.shape);
}

void run_eye_like(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t height = output.dims[0];
  const int64_t width = output.dims[1];
  std::memset(output.data, 0, static_cast<size_t>(output.elements * element_bytes(output.type)));
  // All diagonals outside of the matrix are equivalent.
  const int64_t diagonal = std::clamp(call.node.attributes.get_int("k"), -height, width);
  const auto write = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = output.as<T>().data();
    const int64_t end = std::min(height, width - diagonal);
    for (int64_t row = std::max<int64_t>(0, -diagonal); row < end; ++row) {
      target[row * width + row + diagonal] = from_double<T>(1);
    }
  };
  if (output.type == DataType::Bool) return write(TypeTag<uint8_t>{});
  visit_numeric(output.type, write);
}

}  // namespace

std::vector<Op> eye_like_ops() {
  return {{.name = "EyeLike",
           .versions = {9, 22},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kAllTypes}, {"T2", kAllTypes}},
           .attributes = {{"dtype", AttributeKind::Int, std::nullopt},
                          {"k", AttributeKind::Int, int64_t{0}}},
           .infer = infer_eye_like,
           .flops = no_flops,
           .kernel = run_eye_like}};
}

}  // namespace tessera::ops
