// MatMul and Gemm as oneDNN's matmul sees them: matrices, or batches of matrices, somewhere in the
// memory of the values that are read.
#pragma once

#include <cstdint>
#include <vector>

#include "chain.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One factor, in the memory of `value`. Where that is the input of a Transpose, the primitive reads
// it through strides, and the node is computed on the way.
struct Factor {
  plugin::Value value;
  dnnl::memory::desc desc;
  int32_t transpose = -1;  // node
};

// left * right, [..., m, k] by [..., k, n], and what Gemm does with it.
struct Product {
  Factor left;
  Factor right;
  std::vector<int64_t> sizes;  // [..., m, n], as the primitive sees the result
  ResultView view;             // of the value
  int64_t depth = 1;
  int32_t bias = -1;                    // value
  int32_t ignored = -1;                 // value: Gemm's C where beta is 0
  std::vector<PostOperation> scalings;  // of Gemm
};

// The product of a MatMul or Gemm whose types are known. `reads_through` says whether Transposes
// before it are to be part of it where they can.
Product product_of(const plugin::Graph& graph, const plugin::Node& node, bool reads_through);

// A Transpose behind the result that alone reads it: where the primitive can write its output
// instead, in the order that `desc` says.
struct Turned {
  int32_t node = -1;
  int32_t output = -1;  // value
  dnnl::memory::desc desc;
};
std::optional<Turned> transpose_behind(const plugin::Graph& graph, const Product& product,
                                       const plugin::Value& result);

}  // namespace tessera::onednn
