// SwiGLU: Swish of one input times the other, without broadcasting: Shazeer, 2020,
// https://arxiv.org/abs/2002.05202.
#include <cmath>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_swiglu(InferContext& context) {
  context.set_output(0, context.element(0));
  const Shape* gate = context.shape(0);
  const Shape* linear = context.shape(1);
  if (gate != nullptr) check_shape(context, 1, *gate);
  if (gate == nullptr && linear == nullptr) return;
  Shape shape = gate != nullptr ? *gate : *linear;
  for (size_t axis = 0; linear != nullptr && axis < shape.size(); ++axis) {
    if (!shape[axis].is_known() && (*linear)[axis].is_known()) shape[axis] = (*linear)[axis];
  }
  context.set_output(0, context.element(0), shape);
}

void run_swiglu(const KernelCall& call) {
  const double alpha = call.node.attributes.get_float("alpha");
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* gate = call.inputs[0].as<T>().data();
    const T* linear = call.inputs[1].as<T>().data();
    T* output = call.outputs[0].as<T>().data();
    const int64_t count = call.inputs[0].elements;
    call.pool.parallel_for(count, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const double x = to_double(gate[index]);
        const double swish = x * (1 / (1 + std::exp(-alpha * x)));
        output[index] = from_double<T>(swish * to_double(linear[index]));
      }
    });
  });
}

// Swish has four operations.
int64_t swiglu_flops(const Node& node, std::span<const Type> inputs,
                     std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs), 5).value();
}

}  // namespace

std::vector<Op> swiglu_ops() {
  return {{.name = "SwiGLU",
           .versions = {28},
           .inputs = {{"A", "T"}, {"B", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"alpha", AttributeKind::Float, 1.0F}},
           .traits = kElementwise,
           .infer = infer_swiglu,
           .flops = swiglu_flops,
           .kernel = run_swiglu}};
}

}  // namespace tessera::ops
