// Sparse initializers and the sparse values of Constant nodes.
#pragma once

#include <string>

#include "graph/graph.h"
#include "import/onnx/tensors.h"

namespace tessera::onnx_import {

// Sparse constants up to this size have their elements as a dense tensor too, so that passes see
// them; larger ones are made dense only where a kernel wants them so.
inline constexpr int64_t kMostExpandedBytes = int64_t{1} << 20;

// Reads a SparseTensorProto, with indices of either form (linear, or one tuple for each element),
// and sets type, constant and sparse_constant of `value`. The form is row_sparse where all stored
// rows are whole (or nothing is stored), or the tensor is no matrix; else csr. `where` is what
// errors call it. Throws InvalidModel where values, indices and dimensions do not agree, indices
// are out of range, out of order or repeated; Unsupported where rows or offsets take much more
// than what is stored; and what TensorReader::read() throws.
void read_sparse(const onnx::SparseTensorProto& proto, TensorReader& tensors,
                 const std::string& where, Value& value);

}  // namespace tessera::onnx_import
