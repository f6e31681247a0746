// Attention: Softmax(query * key * scale + mask) * value, as one kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "normalization/prepared_softmax.h"
#include "tessera/backend.h"

namespace tessera::native {

// --- Without sizes -------------------------------------------------------------------------------

// The largest rank of the scores.
inline constexpr size_t kMaxScoreRank = kMaxMaskedRank;

// How a factor or the result of a product lies in memory: its axis `i` is the axis `axes[i]` of a
// dense tensor. The last two axes are those of matrices.
struct AttentionOperand {
  size_t rank = 0;
  std::array<size_t, kMaxScoreRank> axes = {};
};

struct AttentionForm {
  AttentionOperand query;   // [..., rows, depth]
  AttentionOperand key;     // [..., depth, keys]
  AttentionOperand value;   // [..., keys, width]
  AttentionOperand result;  // [..., rows, width]
  float scale = 1;
};

// --- With sizes ----------------------------------------------------------------------------------

// The dimensions of the tensors in memory. Owns none of them.
struct AttentionDims {
  std::span<const int64_t> query = {};
  std::span<const int64_t> key = {};
  std::span<const int64_t> value = {};
  std::span<const int64_t> mask = {};  // empty: there is none
  std::span<const int64_t> result = {};

  std::array<std::span<const int64_t>, 5> all() const { return {query, key, value, mask, result}; }
};

// One matrix for each product; strides count elements.
struct StridedMatrices {
  std::array<int64_t, kMaxScoreRank> strides = {};  // by axis of the batch
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// Owns no memory, so that a kernel can find it in a run.
struct AttentionProblem {
  int64_t rows = 0;        // of queries
  int64_t keys = 0;        // per product
  int64_t depth = 0;       // of a query and of a key
  int64_t width = 0;       // of a value and of a row of the result
  StridedMatrices query;   // [rows, depth]
  StridedMatrices key;     // [depth, keys]
  StridedMatrices value;   // [keys, width]
  StridedMatrices result;  // [rows, width]; column_stride is 1
  float scale = 1;
  // The runs of rows are the products.
  std::optional<SoftmaxMask> mask;
  int64_t products = 1;
  size_t batch_rank = 0;
  std::array<int64_t, kMaxScoreRank> batch = {};  // the products

  // The memory that all scores together would take.
  double score_bytes() const {
    return static_cast<double>(products) * static_cast<double>(rows) * static_cast<double>(keys) *
           static_cast<double>(sizeof(float));
  }
  bool is_empty() const {
    return products == 0 || rows == 0 || keys == 0 || depth == 0 || width == 0;
  }
  double flops() const {
    return 2 * static_cast<double>(products) * static_cast<double>(rows) *
           static_cast<double>(keys) * static_cast<double>(depth + width);
  }
};

// The same function of sizes when a kernel is proposed and when it runs. The dimensions of factors
// and mask are 1 or equal to those of the scores.
AttentionProblem attention_problem_of(const AttentionForm& form, const AttentionDims& dims);

// --- Groups and kernels --------------------------------------------------------------------------

// The nodes that compute an attention; values are those that the kernel reads and writes.
struct AttentionGroup {
  AttentionForm form;
  std::vector<int32_t> nodes;  // ascending
  int32_t query = -1;
  int32_t key = -1;
  int32_t value = -1;
  int32_t mask = -1;
  int32_t result = -1;
  AttentionProblem problem;   // of the proposed sizes
  std::vector<int64_t> dims;  // AttentionDims::all(), one after the other
};

// The attention around a Softmax, of which only `nodes`, `x`, `result`, `scale` and the mask count;
// nullopt if there is none. If `with_transposes`, it also contains the Transposes before and behind
// it, except those whose results other nodes read too.
std::optional<AttentionGroup> attention_around(const plugin::Graph& graph,
                                               const PreparedSoftmax& softmax,
                                               bool with_transposes);

// Indices of the kernel's inputs. One input may have several roles.
struct AttentionPorts {
  size_t query = 0;
  size_t key = 0;
  size_t value = 0;
  std::optional<size_t> mask;

  AttentionDims dims_of(std::span<const plugin::Buffer> inputs,
                        std::span<const plugin::Buffer> outputs) const {
    AttentionDims dims = {.query = inputs[query].sizes(),
                          .key = inputs[key].sizes(),
                          .value = inputs[value].sizes(),
                          .result = outputs[0].sizes()};
    if (mask) dims.mask = inputs[*mask].sizes();
    return dims;
  }
};

// The problem of the group is not empty. Built for `threads` threads, for any sizes.
std::unique_ptr<plugin::Kernel> make_attention_kernel(const AttentionGroup& group,
                                                      const AttentionPorts& ports, int64_t threads);
// The workspace of a kernel for `threads` threads.
int64_t attention_workspace_bytes(const AttentionProblem& problem, int64_t threads);

}  // namespace tessera::native
