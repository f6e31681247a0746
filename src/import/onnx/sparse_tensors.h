// Reads sparse initializers and the sparse values of Constant nodes.
#pragma once

#include <string>

#include "graph/graph.h"
#include "import/onnx/tensors.h"

namespace tessera::onnx_import {

// Sparse constants up to this size also have a dense tensor, so that passes see their elements;
// larger ones are expanded only if a kernel needs that.
inline constexpr int64_t kMaxExpandedBytes = int64_t{1} << 20;

// Reads a SparseTensorProto with indices of either form (linear, or one tuple per element), and
// sets type, constant and sparse_constant of `value`. The format is row_sparse if all stored rows
// are complete (or nothing is stored) or the tensor is not a matrix; else csr. `where` is its name
// in errors. Throws InvalidModel if values, indices and dimensions disagree, or if indices are out
// of range, unsorted or repeated; Unsupported if complete rows or row offsets need much more memory
// than the stored elements; and what TensorReader::read() throws.
void read_sparse(const onnx::SparseTensorProto& proto, TensorReader& tensors,
                 const std::string& where, Value& value);

}  // namespace tessera::onnx_import
