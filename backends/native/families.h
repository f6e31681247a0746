// The families of ops, one file each; native.cc calls them in order.
#pragma once

#include "context.h"

namespace tessera::native {

void propose_arg_max(Context& context);
void propose_concats(Context& context);
void propose_cum_sums(Context& context);
void propose_depth_to_space(Context& context);
// Normalisations of channels, by given statistics or their own.
void propose_channel_normalizations(Context& context);

// Conv in row-major order, with a Relu behind it.
void propose_convolutions(Context& context);

// Functions of one variable, and arithmetic of tensors of one shape, in any dense layout.
void propose_elementwise(Context& context);
void propose_gathers(Context& context);
void propose_one_hots(Context& context);
void propose_pads(Context& context);
void propose_ranges(Context& context);
void propose_repeats(Context& context);
void propose_reshapes(Context& context);
void propose_resizes(Context& context);
void propose_scatters(Context& context);
void propose_slices(Context& context);
void propose_transposes(Context& context);
void propose_trilus(Context& context);

// What moves nothing: reshapes, and splits, slices and concats whose parts lie in the whole.
void propose_views(Context& context);

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

// On values that may be sparse (csr, row_sparse), in that layout.
void propose_sparse_elementwise(Context& context);
void propose_sparse_matmul(Context& context);
void propose_sparse_reduce(Context& context);
void propose_sparse_rows(Context& context);

}  // namespace tessera::native
