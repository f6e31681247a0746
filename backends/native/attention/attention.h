// Attention: Softmax(query * key * scale + mask) * value, as one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "normalization/prepared_softmax.h"
#include "tessera/backend.h"

namespace tessera::native {

// One matrix for each product; strides and offsets count elements.
struct StridedMatrices {
  std::vector<int64_t> offsets;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

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

  int64_t products() const { return static_cast<int64_t>(query.offsets.size()); }
  // The memory that all scores together would take.
  double score_bytes() const {
    return static_cast<double>(products()) * static_cast<double>(rows) * static_cast<double>(keys) *
           static_cast<double>(sizeof(float));
  }
  bool is_empty() const {
    return products() == 0 || rows == 0 || keys == 0 || depth == 0 || width == 0;
  }
  double flops() const {
    return 2 * static_cast<double>(products()) * static_cast<double>(rows) *
           static_cast<double>(keys) * static_cast<double>(depth + width);
  }
};

// The nodes that compute an attention; values are those that the kernel reads and writes.
struct AttentionGroup {
  AttentionProblem problem;
  std::vector<int32_t> nodes;  // ascending
  int32_t query = -1;
  int32_t key = -1;
  int32_t value = -1;
  int32_t mask = -1;
  int32_t result = -1;
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
};

// The problem is not empty. Built for `threads` threads.
std::unique_ptr<plugin::Kernel> make_attention_kernel(const AttentionProblem& problem,
                                                      const AttentionPorts& ports, int64_t threads);
// The workspace of a kernel for `threads` threads.
int64_t attention_workspace_bytes(const AttentionProblem& problem, int64_t threads);

}  // namespace tessera::native
