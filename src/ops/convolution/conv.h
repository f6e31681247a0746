// Conv for ops that compute it in another form.
#pragma once

#include <optional>

#include "ops/op.h"

namespace tessera::ops {

// The shape of the convolution of two inputs, by the attributes of Conv; nullopt if it is unknown.
// fail()s if there is none.
std::optional<Shape> convolution_shape(const InferContext& context, size_t input, size_t weights);
// The same if `input` is not as the node has it.
std::optional<Shape> convolution_shape(const InferContext& context, const InferInput& input,
                                       size_t weights);

// The reference kernel.
void run_conv(const KernelCall& call);

}  // namespace tessera::ops
