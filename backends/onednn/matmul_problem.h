// MatMul and Gemm as a matmul of oneDNN: strided matrices, or batches of matrices, in the memory of
// the operands.
#pragma once

#include <cstdint>
#include <vector>

#include "base/chain.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// One factor, in the memory of `value`. If that is the input of a Transpose, the primitive reads it
// through strides, so the Transpose is part of the candidate.
struct Factor {
  plugin::Value value;
  dnnl::memory::desc desc;
  int32_t transpose = -1;  // node
};

// left * right, [..., m, k] by [..., k, n], with the scaling and addend of Gemm.
struct MatMulProblem {
  Factor left;
  Factor right;
  std::vector<int64_t> sizes;  // [..., m, n], as the primitive sees the result
  ResultView view;             // of the value
  int64_t depth = 1;
  int32_t bias = -1;                    // value
  int32_t ignored = -1;                 // value: C of Gemm if beta is 0
  std::vector<PostOperation> scalings;  // of Gemm
};

// The problem of a MatMul or Gemm whose types are known. If `reads_through` is
// true, the problem includes preceding Transposes that it can express as strides.
MatMulProblem matmul_problem_of(const plugin::Graph& graph, const plugin::Node& node,
                                bool reads_through);

// A following Transpose that alone reads the result, if the primitive can write its output instead,
// in the order of `desc`.
struct FusedTranspose {
  int32_t node = -1;
  int32_t output = -1;  // value
  dnnl::memory::desc desc;
};
std::optional<FusedTranspose> following_transpose(const plugin::Graph& graph,
                                                  const MatMulProblem& problem,
                                                  const plugin::Value& result);

}  // namespace tessera::onednn
