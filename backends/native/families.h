// The families of ops, one file each; native.cc calls them in order.
#pragma once

#include "context.h"

namespace tessera::native {

// Normalisations of channels, by given statistics or their own.
void propose_channel_normalizations(Context& context);

// Conv in row-major order, with a Relu behind it.
void propose_convolutions(Context& context);

// Functions of one variable, and arithmetic of tensors of one shape, in any dense layout.
void propose_elementwise(Context& context);

// Normalisations of rows, also as exporters write them out.
void propose_layer_normalizations(Context& context);

// MaxPool and AveragePool, in whatever layout.
void propose_poolings(Context& context);

// MatMul and Gemm, with a sum and a Relu behind them.
void propose_products(Context& context);

// The Reduce family over any axes, and the global poolings.
void propose_reductions(Context& context);

// Softmax and LogSoftmax, with a scaling and a mask before them.
void propose_softmaxes(Context& context);

}  // namespace tessera::native
