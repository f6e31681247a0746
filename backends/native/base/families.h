// The parts that native.cc assembles: the families of ops, one file each, and the layouts.
#pragma once

#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

void propose_arg_max(plugin::ProposeContext& context);
void propose_concats(plugin::ProposeContext& context);
void propose_cum_sums(plugin::ProposeContext& context);
void propose_depth_to_space(plugin::ProposeContext& context);
// Attention as the nodes into which exporters decompose it, with its Transposes or without.
void propose_attentions(plugin::ProposeContext& context);
// GroupQueryAttention of ONNX Runtime's domain.
void propose_group_query_attentions(plugin::ProposeContext& context);
// RotaryEmbedding, also of ONNX Runtime's domain.
void propose_rotary_embeddings(plugin::ProposeContext& context);
// Normalization of channels: BatchNormalization with given statistics; InstanceNormalization,
// GroupNormalization and LRN.
void propose_channel_normalizations(plugin::ProposeContext& context);
// InstanceNormalization and GroupNormalization in layouts with contiguous channels.
void propose_group_normalizations(plugin::ProposeContext& context);

// Conv in row-major order, fused with a following Relu.
void propose_convolutions(plugin::ProposeContext& context);

// Conv with constant weights in layouts with contiguous channels, fused with a following sum and
// activation: Winograd's algorithm, one tap, depthwise.
void propose_fused_convolutions(plugin::ProposeContext& context);

// A convolution of each channel alone with the convolutions of one tap before or after it, or both,
// in strips that stay in the cache.
void propose_depthwise_strips(plugin::ProposeContext& context);

// Elementwise ops in any dense layout, and groups of them in one pass.
void propose_elementwise(plugin::ProposeContext& context);
void propose_gathers(plugin::ProposeContext& context);
void propose_one_hots(plugin::ProposeContext& context);
void propose_pads(plugin::ProposeContext& context);
void propose_ranges(plugin::ProposeContext& context);
void propose_expands(plugin::ProposeContext& context);
void propose_reshapes(plugin::ProposeContext& context);
void propose_resizes(plugin::ProposeContext& context);
void propose_scatters(plugin::ProposeContext& context);
void propose_slices(plugin::ProposeContext& context);
void propose_top_k(plugin::ProposeContext& context);
void propose_transposed_convolutions(plugin::ProposeContext& context);
void propose_transposes(plugin::ProposeContext& context);
void propose_trilus(plugin::ProposeContext& context);

// Ops that copy nothing: reshapes; splits, slices and concats whose parts share the memory of the
// whole.
void propose_views(plugin::ProposeContext& context);

// ConvInteger and QLinearConv.
void propose_integer_convolutions(plugin::ProposeContext& context);

// MatMulInteger and its relatives.
void propose_integer_matmuls(plugin::ProposeContext& context);

// MatMulInteger and ConvInteger, fused with a following conversion to float32, scaling and sum.
void propose_dynamic_groups(plugin::ProposeContext& context);

// Conv, MatMul and Gemm on dequantised bytes, fused with what surrounds them.
void propose_quantized_regions(plugin::ProposeContext& context);

// LayerNormalization, also as the nodes into which exporters decompose it.
void propose_layer_normalizations(plugin::ProposeContext& context);

// LSTM, fused with a following Transpose that makes directions the second last axis.
void propose_recurrences(plugin::ProposeContext& context);

// MaxPool and AveragePool, in all shared layouts.
void propose_poolings(plugin::ProposeContext& context);

// MatMul and Gemm, fused with a following sum and Relu, SiLU or Gelu.
void propose_matmuls(plugin::ProposeContext& context);

// MatMulNBits of ONNX Runtime's domain.
void propose_block_products(plugin::ProposeContext& context);

// The Reduce family over any axes, and the global poolings.
void propose_reductions(plugin::ProposeContext& context);

// Softmax and LogSoftmax, fused with a preceding scaling and mask.
void propose_softmaxes(plugin::ProposeContext& context);

// Ops on quantised bytes: as regions between DequantizeLinear and QuantizeLinear, and those of
// com.microsoft. QuantizeLinear and DequantizeLinear themselves are elementwise ops.
void propose_byte_poolings(plugin::ProposeContext& context);
void propose_byte_softmaxes(plugin::ProposeContext& context);
void propose_dynamic_quantizations(plugin::ProposeContext& context);
void propose_linear_wheres(plugin::ProposeContext& context);
void propose_linear_functions(plugin::ProposeContext& context);
void propose_quantized_concats(plugin::ProposeContext& context);
void propose_quantized_pairs(plugin::ProposeContext& context);

// Kernels on sparse values, in the layouts csr and row_sparse.
void propose_sparse_elementwise(plugin::ProposeContext& context);
void propose_sparse_matmul(plugin::ProposeContext& context);
void propose_sparse_reduce(plugin::ProposeContext& context);
void propose_sparse_rows(plugin::ProposeContext& context);

// The layouts nhwc, nchw8c and nchw16c with conversions from and to row-major, so that kernels here
// can use them without any other backend. Defined in copy/layouts.cc.
std::vector<plugin::Layout> shared_layouts();

// Conversions between two of these layouts that do not pass through row-major.
std::vector<plugin::Conversion> direct_conversions();

}  // namespace tessera::native
