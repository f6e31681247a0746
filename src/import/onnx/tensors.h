// Reads the elements of tensors in all of ONNX's encodings; sparse_tensors.cc reads sparse
// initializers and the sparse values of Constant nodes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "import/onnx/external_data.h"
#include "import/onnx/wire/byte_source.h"
#include "import/onnx/wire/wire_scan.h"
#include "tessera/tensor.h"

namespace tessera::onnx_import {

// Reads the tensors of one scanned file. Elements in the file are copied once, from the file into
// the tensor. External ones are mapped, or copied if they are misaligned or the caller asks for
// copies. All three objects must outlive the reader, but not its tensors.
class TensorReader {
 public:
  TensorReader(const ByteSource& source, const std::vector<Payload>& payloads,
               ExternalData& external, bool copies_external = false);

  // `where` is the tensor's name in errors. Throws InvalidModel if dimensions and elements
  // disagree, Unsupported for element types without storage, and OutOfMemory, before any
  // allocation, if this tensor and those read before need more memory than the machine has. Reading
  // a tensor twice gives the same storage.
  Tensor read(const onnx::TensorProto& proto, const std::string& where);

  // Subtracts `bytes` from the remaining memory. Throws OutOfMemory if it does not suffice.
  void charge(int64_t bytes, const std::string& where);

 private:
  Tensor read_external(const onnx::TensorProto& proto, DataType type, std::vector<int64_t> dims,
                       const std::string& where);
  Tensor read_strings(const onnx::TensorProto& proto, std::vector<int64_t> dims,
                      const std::string& where);
  Tensor read_payload(const Payload& payload, DataType type, std::vector<int64_t> dims,
                      const std::string& where);
  Tensor read_raw(const ByteSource& source, int64_t offset, DataType type,
                  std::vector<int64_t> dims, const std::string& where);
  Tensor allocate(DataType type, std::vector<int64_t> dims, const std::string& where);

  const ByteSource& source_;
  const std::vector<Payload>& payloads_;
  ExternalData& external_;
  bool copies_external_;
  int64_t bytes_left_;  // of the machine's memory
  // By payload, so that calls of the same function share its weights.
  std::unordered_map<int64_t, Tensor> read_already_;
};

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
