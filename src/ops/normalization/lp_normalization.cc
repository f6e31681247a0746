// LpNormalization: divides each line along an axis by its Lp norm. Lines of zeros stay zeros.
#include <string>

#include "ops/convert_element.h"
#include "ops/lp_norm.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_lp_normalization(InferContext& context) {
  const int64_t p = context.node().attributes.get_int("p");
  if (p != 1 && p != 2) {
    context.fail("attribute 'p': expected 1 or 2, found " + std::to_string(p));
  }
  const Shape* shape = context.shape(0);
  if (shape != nullptr) {
    context.normalized_axis(context.node().attributes.get_int("axis"),
                            static_cast<int64_t>(shape->size()));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

template <class T>
void normalize_line(const T* input, T* output, int64_t length, int64_t stride, int64_t p) {
  const auto visit_elements = [&](const auto& visit) {
    for (int64_t index = 0; index < length; ++index) visit(to_double(input[index * stride]));
  };
  const double norm = lp_norm(visit_elements, p);
  for (int64_t index = 0; index < length; ++index) {
    output[index * stride] =
        from_double<T>(norm == 0 ? 0.0 : to_double(input[index * stride]) / norm);
  }
}

void run_lp_normalization(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const int64_t p = call.node.attributes.get_int("p");
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const int64_t length = input.dims[static_cast<size_t>(axis)];
  const int64_t stride = element_count(input.dims.subspan(static_cast<size_t>(axis) + 1));
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(
        input.elements / length, 4096 / length + 1, [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const int64_t start = line / stride * length * stride + line % stride;
            normalize_line(source + start, target + start, length, stride, p);
          }
        });
  });
}

}  // namespace

std::vector<Op> lp_normalization_ops() {
  return {{.name = "LpNormalization",
           .versions = {1, 22},
           .inputs = {{"input", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                          {"p", AttributeKind::Int, int64_t{2}}},
           .infer = infer_lp_normalization,
           .flops = flops_per_output,
           .kernel = run_lp_normalization}};
}

}  // namespace tessera::ops
