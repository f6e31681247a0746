// The families of ops, one file each; native.cc calls them in order.
#pragma once

#include "tessera/backend.h"

namespace tessera::native {

void propose_arg_max(plugin::ProposeContext& context);
void propose_concats(plugin::ProposeContext& context);
void propose_cum_sums(plugin::ProposeContext& context);
void propose_depth_to_space(plugin::ProposeContext& context);
// Normalisations of channels, by given statistics or their own.
void propose_channel_normalizations(plugin::ProposeContext& context);

// Conv in row-major order, with a Relu behind it.
void propose_convolutions(plugin::ProposeContext& context);

// 3 x 3 Conv with fewer multiplications, with a sum and a Relu behind it.
void propose_winograd_convolutions(plugin::ProposeContext& context);

// Functions of one variable, and arithmetic of tensors of one shape, in any dense layout.
void propose_elementwise(plugin::ProposeContext& context);
void propose_gathers(plugin::ProposeContext& context);
void propose_one_hots(plugin::ProposeContext& context);
void propose_pads(plugin::ProposeContext& context);
void propose_ranges(plugin::ProposeContext& context);
void propose_repeats(plugin::ProposeContext& context);
void propose_reshapes(plugin::ProposeContext& context);
void propose_resizes(plugin::ProposeContext& context);
void propose_scatters(plugin::ProposeContext& context);
void propose_slices(plugin::ProposeContext& context);
void propose_transposes(plugin::ProposeContext& context);
void propose_trilus(plugin::ProposeContext& context);

// What moves nothing: reshapes, and splits, slices and concats whose parts lie in the whole.
void propose_views(plugin::ProposeContext& context);

// Normalisations of rows, also as exporters write them out.
void propose_layer_normalizations(plugin::ProposeContext& context);

// LSTM, with a Transpose behind it that puts the directions side by side.
void propose_lstms(plugin::ProposeContext& context);

// MaxPool and AveragePool, in whatever layout.
void propose_poolings(plugin::ProposeContext& context);

// MatMul and Gemm, with a sum and a Relu behind them.
void propose_products(plugin::ProposeContext& context);

// The Reduce family over any axes, and the global poolings.
void propose_reductions(plugin::ProposeContext& context);

// Softmax and LogSoftmax, with a scaling and a mask before them.
void propose_softmaxes(plugin::ProposeContext& context);

// On values that may be sparse (csr, row_sparse), in that layout.
void propose_sparse_elementwise(plugin::ProposeContext& context);
void propose_sparse_matmul(plugin::ProposeContext& context);
void propose_sparse_reduce(plugin::ProposeContext& context);
void propose_sparse_rows(plugin::ProposeContext& context);

}  // namespace tessera::native
