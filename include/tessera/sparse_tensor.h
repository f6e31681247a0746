// Tensors of which only a part is stored: fed and given where bind() was told so (BindOptions::
// layouts). What is not stored is zero.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/tensor.h"

namespace tessera {

enum class SparseFormat : uint8_t {
  Csr = 1,        // rank 2: for each row its stored elements, by ascending column
  RowSparse = 2,  // rank 1 and more: some rows (of axis 0), by ascending number
};

std::string_view name(SparseFormat format);  // "csr", "row_sparse"

// A value type with shared storage that nobody changes: copies are cheap, any thread may read. Lies
// in one piece, as docs/formats/sparse.md tells byte by byte, so that running reads it in place.
class SparseTensor {
 public:
  SparseTensor() = default;  // holds nothing: is_empty()

  // A matrix from the arrays that every csr has: `row_offsets` (int32 or int64, one more than
  // rows), `columns` (int32 or int64) and `values`, one for each stored element; they are copied.
  // Throws InvalidArgument, saying what is wrong and where: lengths that do not fit together,
  // offsets that decrease, columns that are out of range, out of order or repeated.
  static SparseTensor csr(std::vector<int64_t> dims, const Tensor& row_offsets,
                          const Tensor& columns, const Tensor& values);
  // From the numbers of the stored rows (int32 or int64) and their elements, whose dimensions are
  // those of the tensor with the number of stored rows first. Throws as csr() does.
  static SparseTensor row_sparse(std::vector<int64_t> dims, const Tensor& rows,
                                 const Tensor& values);
  // The elements (or rows) of `tensor` that are not all zero bits. Throws InvalidArgument where the
  // format does not hold such a tensor.
  static SparseTensor from_dense(SparseFormat format, const Tensor& tensor);
  // Takes over bytes that follow the format, made by a kernel.
  static SparseTensor from_storage(DataType type, std::vector<int64_t> dims, Tensor storage);

  bool is_empty() const { return type_ == DataType::Undefined; }
  SparseFormat format() const { return format_; }
  DataType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Stored elements (csr) or rows (row_sparse).
  int64_t stored() const;
  // Stored of all; 1 for a tensor without elements.
  double density() const;

  std::span<const int64_t> row_offsets() const;  // of csr
  std::span<const int32_t> columns() const;      // of csr
  std::span<const int64_t> rows() const;         // of row_sparse
  Tensor values() const;                         // [stored], or [stored, ...]; shares storage
  // All of it, as bytes.
  const Tensor& storage() const { return storage_; }

  // Throws OutOfMemory where the machine has not that much.
  Tensor to_dense() const;

 private:
  SparseFormat format_ = SparseFormat::Csr;
  DataType type_ = DataType::Undefined;
  std::vector<int64_t> dims_;
  Tensor storage_;
};

// Stored elements or rows that a tensor of these dimensions can have; -1 where `format` does not
// hold it: csr is for matrices of less than 2^31 columns, row_sparse for rank 1 and more.
int64_t max_stored(SparseFormat format, std::span<const int64_t> dims);

// Bytes that a tensor with room for `capacity` takes; -1 where `format` does not hold it, or they
// exceed 64 bits.
int64_t sparse_bytes(SparseFormat format, DataType type, std::span<const int64_t> dims,
                     int64_t capacity);

// What an executor takes and gives where layouts were asked for.
using AnyTensor = std::variant<Tensor, SparseTensor>;

}  // namespace tessera
