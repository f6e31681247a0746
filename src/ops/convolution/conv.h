// Conv for ops that compute it in another form.
#pragma once

#include <optional>
#include <span>

#include "base/threads/function_ref.h"
#include "ops/op.h"

namespace tessera::ops {

// The shape of the convolution of two inputs, by the attributes of Conv; nullopt if it is unknown.
// fail()s if there is none.
std::optional<Shape> convolution_shape(const InferContext& context, size_t input, size_t weights);
// The same if `input` is not as the node has it.
std::optional<Shape> convolution_shape(const InferContext& context, const InferInput& input,
                                       size_t weights);

// Same as above, for inputs X, W and B that are not those of the node.
std::optional<Shape> convolution_shape(const InferContext& context,
                                       std::span<const InferInput> inputs);

// What a fused op does with sums before they are rounded. `position` is the index of the first one
// in the output. Must be thread-safe.
using FinishSums = FunctionRef<void(int64_t position, std::span<double> sums)>;

// The reference kernel, for inputs X, W and B.
void run_conv(const KernelCall& call);
void run_conv(const KernelCall& call, FinishSums finish);

// A multiply-add for each tap and input channel of each output.
int64_t conv_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs);

}  // namespace tessera::ops
