// Identity. Passes usually remove it; otherwise it copies.
#include <cstring>

#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_identity(InferContext& context) {
  const Type& type = context.input(0).type;
  if (!type.is_tensor() && type.kind != Type::Kind::Unknown) {
    context.outputs()[0].type = type;
    return;
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
  context.set_elements(0, context.input(0).elements);
}

void run_identity(const KernelCall& call) {
  const int64_t bytes = call.outputs[0].elements * element_bytes(call.outputs[0].type);
  if (bytes > 0) {
    std::memcpy(call.outputs[0].data, call.inputs[0].data, static_cast<size_t>(bytes));
  }
}

void run_identity_of_values(const ValueCall& call) { call.outputs[0] = call.inputs[0].owned(); }

}  // namespace

std::vector<Op> identity_ops() {
  return {{.name = "Identity",
           .versions = {1, 13, 14, 16, 19, 21, 23, 24, 25},
           .inputs = {{"input", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings, small_types_since(19)}},
           .traits = kElementwise | kView | kKeepsZero,
           .infer = infer_identity,
           .flops = no_flops,
           .kernel = run_identity,
           .value_kernel = run_identity_of_values}};
}

}  // namespace tessera::ops
