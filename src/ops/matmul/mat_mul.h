// MatMul for ops that compute it in another form.
#pragma once

#include <optional>

#include "ops/op.h"

namespace tessera::ops {

// The shape of the product of two inputs; nullopt if a rank is unknown. fail()s if they have none.
std::optional<Shape> product_shape(const InferContext& context, size_t left, size_t right);

// The reference kernel.
void run_mat_mul(const KernelCall& call);

}  // namespace tessera::ops
