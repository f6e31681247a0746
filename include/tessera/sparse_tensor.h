// Tensors of which only some elements are stored; the others are zero. Executors accept and return
// them if RunOptions::layouts says so.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/tensor.h"

namespace tessera {

enum class SparseFormat : uint8_t {
  Csr = 1,        // rank 2: for each row, its stored elements by ascending column
  RowSparse = 2,  // rank 1 or more: some rows (of axis 0), by ascending index
};

std::string_view name(SparseFormat format);  // "csr", "row_sparse"

// A value type with shared, immutable storage: copying is inexpensive, and any thread may read. The
// storage is one block of memory in the format of docs/formats/sparse.md, so that runs read it
// without a copy.
class SparseTensor {
 public:
  SparseTensor() = default;  // no elements and no type: is_empty()

  // Creates a matrix from copies of the arrays of the csr format: `row_offsets` (int32 or int64,
  // one more than rows), `columns` (int32 or int64) and `values`, one for each stored element.
  // Throws InvalidArgument, saying what is wrong and where: lengths that do not match, offsets that
  // decrease, columns that are out of range, out of order or repeated.
  static SparseTensor csr(std::vector<int64_t> dims, const Tensor& row_offsets,
                          const Tensor& columns, const Tensor& values);
  // Creates a tensor from copies of the indices of the stored rows (int32 or int64) and their
  // elements. `values` has the dimensions of the tensor, except that the first one is the number of
  // stored rows. Throws as csr() does.
  static SparseTensor row_sparse(std::vector<int64_t> dims, const Tensor& rows,
                                 const Tensor& values);
  // Stores the elements (or rows) of `tensor` that are not all zero bits. Throws InvalidArgument if
  // the format does not support such a tensor.
  static SparseTensor from_dense(SparseFormat format, const Tensor& tensor);
  // Takes ownership of bytes in the storage format, which a kernel wrote.
  static SparseTensor from_storage(DataType type, std::vector<int64_t> dims, Tensor storage);

  bool is_empty() const { return type_ == DataType::Undefined; }
  SparseFormat format() const { return format_; }
  DataType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Stored elements (csr) or rows (row_sparse).
  int64_t stored() const;
  // The share of elements or rows that are stored; 1 for a tensor without elements.
  double density() const;

  std::span<const int64_t> row_offsets() const;  // of csr
  std::span<const int32_t> columns() const;      // of csr
  std::span<const int64_t> rows() const;         // of row_sparse
  Tensor values() const;                         // [stored], or [stored, ...]; shares storage
  // The whole storage, as bytes.
  const Tensor& storage() const { return storage_; }

  // Throws OutOfMemory if the machine does not have enough memory.
  Tensor to_dense() const;

 private:
  SparseFormat format_ = SparseFormat::Csr;
  DataType type_ = DataType::Undefined;
  std::vector<int64_t> dims_;
  Tensor storage_;
};

// The maximum number of stored elements or rows of a tensor of these dimensions; -1 if `format`
// does not support it: csr is for matrices of less than 2^31 columns, row_sparse for rank 1 or
// more.
int64_t max_stored(SparseFormat format, std::span<const int64_t> dims);

// The storage size of a tensor with this capacity, in bytes; -1 if `format` does not support it, or
// if the size exceeds 64 bits.
int64_t sparse_bytes(SparseFormat format, DataType type, std::span<const int64_t> dims,
                     int64_t capacity);

// An input or output of Executor::run_any().
using AnyTensor = std::variant<Tensor, SparseTensor>;

}  // namespace tessera
