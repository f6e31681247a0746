#include "tessera/sparse_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "base/tensor/sparse_storage.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using plugin::CsrTarget;
using plugin::CsrView;
using plugin::RowSparseTarget;
using plugin::RowSparseView;

[[noreturn]] void fail(SparseFormat format, std::span<const int64_t> dims,
                       const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(name(format)) + " tensor " + dims_text(dims),
              message);
}

int64_t row_elements(std::span<const int64_t> dims) { return element_count(dims.subspan(1)); }

// Throws if `format` does not allow `dims`.
void check_dims(SparseFormat format, DataType type, std::span<const int64_t> dims) {
  tensor_bytes(type, dims);
  if (max_stored(format, dims) < 0) {
    fail(format, dims,
         format == SparseFormat::Csr ? "expected two dimensions, the second below 2147483648"
                                     : "expected at least one dimension");
  }
  if (element_bytes(type) == 0) {
    fail(format, dims, "elements of " + std::string(name(type)) + " cannot be stored");
  }
}

// Reads indices of either width.
class IndexArray {
 public:
  IndexArray(SparseFormat format, std::span<const int64_t> dims, const char* what,
             const Tensor& tensor)
      : is_wide_(tensor.type() == DataType::Int64), data_(tensor.data()) {
    const bool is_index = is_wide_ || tensor.type() == DataType::Int32;
    if (is_index && tensor.rank() == 1) return;
    fail(format, dims,
         std::string(what) + ": expected int32 or int64 in one dimension, found " +
             std::string(name(tensor.type())) + " " + dims_text(tensor.dims()));
  }
  int64_t operator[](int64_t index) const {
    return is_wide_ ? static_cast<const int64_t*>(data_)[index]
                    : int64_t{static_cast<const int32_t*>(data_)[index]};
  }

 private:
  bool is_wide_;
  const void* data_;
};

std::string found(const char* what, int64_t index, int64_t value) {
  return "found " + std::to_string(value) + " as " + what + "[" + std::to_string(index) + "]";
}

void check_offsets(std::span<const int64_t> dims, const IndexArray& offsets, int64_t stored) {
  const int64_t rows = dims[0];
  const char* const what = "row_offsets";
  const auto refuse = [&](const std::string& message) { fail(SparseFormat::Csr, dims, message); };
  if (offsets[0] != 0) {
    refuse("row_offsets: expected 0 to begin with, " + found(what, 0, offsets[0]));
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (offsets[row + 1] >= offsets[row]) continue;
    refuse("row_offsets: expected at least " + std::to_string(offsets[row]) + ", " +
           found(what, row + 1, offsets[row + 1]));
  }
  if (offsets[rows] != stored) {
    refuse("row_offsets: expected the number of stored elements, " + std::to_string(stored) +
           ", to end with, " + found(what, rows, offsets[rows]));
  }
}

void check_columns(std::span<const int64_t> dims, const IndexArray& offsets,
                   const IndexArray& columns) {
  for (int64_t row = 0; row < dims[0]; ++row) {
    for (int64_t at = offsets[row]; at < offsets[row + 1]; ++at) {
      const int64_t column = columns[at];
      if (column < 0 || column >= dims[1]) {
        fail(SparseFormat::Csr, dims,
             "columns: expected 0 to " + std::to_string(dims[1] - 1) + ", " +
                 found("columns", at, column) + " (row " + std::to_string(row) + ")");
      }
      if (at > offsets[row] && column <= columns[at - 1]) {
        fail(SparseFormat::Csr, dims,
             "columns: expected ascending ones without repetition in each row, " +
                 found("columns", at, column) + " after " + std::to_string(columns[at - 1]) +
                 " (row " + std::to_string(row) + ")");
      }
    }
  }
}

void check_rows(std::span<const int64_t> dims, const IndexArray& rows, int64_t stored) {
  for (int64_t at = 0; at < stored; ++at) {
    if (rows[at] < 0 || rows[at] >= dims[0]) {
      fail(SparseFormat::RowSparse, dims,
           "rows: expected 0 to " + std::to_string(dims[0] - 1) + ", " +
               found("rows", at, rows[at]));
    }
    if (at > 0 && rows[at] <= rows[at - 1]) {
      fail(SparseFormat::RowSparse, dims,
           "rows: expected ascending ones without repetition, " + found("rows", at, rows[at]) +
               " after " + std::to_string(rows[at - 1]));
    }
  }
}

Tensor allocate(SparseFormat format, DataType type, std::span<const int64_t> dims,
                int64_t capacity) {
  const int64_t bytes = sparse_bytes(format, type, dims, capacity);
  const bool is_small = 0 <= bytes && bytes < kLargeAllocationBytes;
  if (!is_small && (bytes < 0 || bytes > available_memory_bytes())) {
    throw Error(ErrorKind::OutOfMemory, std::string(name(format)) + " tensor " + dims_text(dims),
                bytes < 0 ? "its size exceeds 64 bits"
                          : "needs " + std::to_string(bytes) + " bytes, more than there are");
  }
  Tensor storage(DataType::UInt8, {bytes});
  // Digests include the padding between the parts.
  std::memset(storage.mutable_data(), 0, static_cast<size_t>(bytes));
  return storage;
}

void copy_elements(void* to, const Tensor& from) {
  if (from.bytes() > 0) std::memcpy(to, from.data(), static_cast<size_t>(from.bytes()));
}

void check_length(SparseFormat format, std::span<const int64_t> dims, const char* what,
                  int64_t expected, int64_t length) {
  if (expected == length) return;
  fail(format, dims,
       std::string(what) + ": expected " + std::to_string(expected) + " of them, found " +
           std::to_string(length));
}

}  // namespace

std::string_view name(SparseFormat format) {
  return format == SparseFormat::Csr ? TESSERA_LAYOUT_CSR : TESSERA_LAYOUT_ROW_SPARSE;
}

int64_t max_stored(SparseFormat format, std::span<const int64_t> dims) {
  if (format == SparseFormat::RowSparse) return dims.empty() ? -1 : dims[0];
  const bool is_held = dims.size() == 2 && dims[1] <= std::numeric_limits<int32_t>::max();
  return is_held ? element_count(dims) : -1;
}

int64_t sparse_bytes(SparseFormat format, DataType type, std::span<const int64_t> dims,
                     int64_t capacity) {
  const int64_t size = element_bytes(type);
  if (max_stored(format, dims) < 0 || size == 0) return -1;
  if (format == SparseFormat::Csr) return plugin::csr_parts(dims[0], capacity, size).bytes;
  int64_t row_bytes = 0;
  if (__builtin_mul_overflow(row_elements(dims), size, &row_bytes)) return -1;
  return plugin::row_sparse_parts(capacity, row_bytes).bytes;
}

SparseTensor SparseTensor::csr(std::vector<int64_t> dims, const Tensor& row_offsets,
                               const Tensor& columns, const Tensor& values) {
  constexpr SparseFormat kFormat = SparseFormat::Csr;
  check_dims(kFormat, values.type(), dims);
  const IndexArray offsets(kFormat, dims, "row_offsets", row_offsets);
  const IndexArray indices(kFormat, dims, "columns", columns);
  if (values.rank() != 1) {
    fail(kFormat, dims, "values: expected one dimension, found " + dims_text(values.dims()));
  }
  check_length(kFormat, dims, "row_offsets", dims[0] + 1, row_offsets.elements());
  check_length(kFormat, dims, "columns (one for each value)", values.elements(),
               columns.elements());
  check_offsets(dims, offsets, values.elements());
  check_columns(dims, offsets, indices);
  SparseTensor made;
  made.storage_ = allocate(kFormat, values.type(), dims, values.elements());
  const CsrTarget target(made.storage_.mutable_data(), dims[0], values.elements(),
                         element_bytes(values.type()));
  for (int64_t row = 0; row <= dims[0]; ++row) target.offsets[row] = offsets[row];
  for (int64_t at = 0; at < values.elements(); ++at) {
    target.columns[at] = static_cast<int32_t>(indices[at]);
  }
  copy_elements(target.values, values);
  target.header->stored = values.elements();
  made.type_ = values.type();
  made.dims_ = std::move(dims);
  return made;
}

SparseTensor SparseTensor::row_sparse(std::vector<int64_t> dims, const Tensor& rows,
                                      const Tensor& values) {
  constexpr SparseFormat kFormat = SparseFormat::RowSparse;
  check_dims(kFormat, values.type(), dims);
  const IndexArray numbers(kFormat, dims, "rows", rows);
  std::vector<int64_t> stored_dims = dims;
  stored_dims[0] = rows.elements();
  if (values.dims() != stored_dims) {
    fail(kFormat, dims,
         "values: expected " + dims_text(stored_dims) + " for this number of stored rows, found " +
             dims_text(values.dims()));
  }
  check_rows(dims, numbers, rows.elements());
  SparseTensor made;
  made.format_ = kFormat;
  made.storage_ = allocate(kFormat, values.type(), dims, rows.elements());
  const RowSparseTarget target(made.storage_.mutable_data(), rows.elements(),
                               row_elements(dims) * element_bytes(values.type()));
  for (int64_t at = 0; at < rows.elements(); ++at) target.rows[at] = numbers[at];
  copy_elements(target.values, values);
  target.header->stored = rows.elements();
  made.type_ = values.type();
  made.dims_ = std::move(dims);
  return made;
}

namespace {

void compress_rows(const char* from, int64_t rows, int64_t width, int64_t size,
                   const CsrTarget& target) {
  target.offsets[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = target.offsets[row];
    const char* elements = from + row * width * size;
    target.offsets[row + 1] = at + count_nonzero(elements, width, size);
    compress_row(elements, width, size, target.columns + at, target.values_as<char>() + at * size);
  }
}

}  // namespace

SparseTensor SparseTensor::from_dense(SparseFormat format, const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.dims();
  check_dims(format, tensor.type(), dims);
  const int64_t size = element_bytes(tensor.type());
  const int64_t width = row_elements(dims);
  const auto* from = static_cast<const char*>(tensor.data());
  SparseTensor made;
  made.format_ = format;
  made.type_ = tensor.type();
  made.dims_ = dims;
  if (format == SparseFormat::Csr) {
    const int64_t stored = count_nonzero(from, tensor.elements(), size);
    made.storage_ = allocate(format, tensor.type(), dims, stored);
    const CsrTarget target(made.storage_.mutable_data(), dims[0], stored, size);
    compress_rows(from, dims[0], width, size, target);
    target.header->stored = stored;
    return made;
  }
  std::vector<int64_t> present;
  for (int64_t row = 0; row < dims[0]; ++row) {
    if (count_nonzero(from + row * width * size, width, size) > 0) present.push_back(row);
  }
  const auto stored = static_cast<int64_t>(present.size());
  made.storage_ = allocate(format, tensor.type(), dims, stored);
  const RowSparseTarget target(made.storage_.mutable_data(), stored, width * size);
  for (int64_t at = 0; at < stored; ++at) {
    const int64_t row = present[static_cast<size_t>(at)];
    target.rows[at] = row;
    std::memcpy(target.values_as<char>() + at * width * size, from + row * width * size,
                static_cast<size_t>(width * size));
  }
  target.header->stored = stored;
  return made;
}

SparseTensor SparseTensor::from_storage(DataType type, std::vector<int64_t> dims, Tensor storage) {
  SparseTensor made;
  const auto* header = static_cast<const tessera_sparse_header*>(storage.data());
  made.format_ = static_cast<SparseFormat>(header->format);
  TESSERA_CHECK(header->stored >= 0 && header->stored <= header->capacity &&
                    sparse_bytes(made.format_, type, dims, header->capacity) <= storage.bytes(),
                "kernels and conversions write sparse buffers as the contract says");
  made.type_ = type;
  made.dims_ = std::move(dims);
  made.storage_ = std::move(storage);
  return made;
}

int64_t SparseTensor::stored() const {
  return static_cast<const tessera_sparse_header*>(storage_.data())->stored;
}

double SparseTensor::density() const {
  const int64_t capacity = max_stored(format_, dims_);
  return capacity == 0 ? 1 : static_cast<double>(stored()) / static_cast<double>(capacity);
}

std::span<const int64_t> SparseTensor::row_offsets() const {
  TESSERA_CHECK(format_ == SparseFormat::Csr, "only csr has row offsets");
  return {CsrView(storage_.data()).offsets, static_cast<size_t>(dims_[0]) + 1};
}

std::span<const int32_t> SparseTensor::columns() const {
  TESSERA_CHECK(format_ == SparseFormat::Csr, "only csr has columns");
  return {CsrView(storage_.data()).columns, static_cast<size_t>(stored())};
}

std::span<const int64_t> SparseTensor::rows() const {
  TESSERA_CHECK(format_ == SparseFormat::RowSparse, "only row_sparse has rows");
  return {RowSparseView(storage_.data()).rows, static_cast<size_t>(stored())};
}

Tensor SparseTensor::values() const {
  std::vector<int64_t> dims = {stored()};
  const void* values = CsrView(storage_.data()).values;
  if (format_ == SparseFormat::RowSparse) {
    dims.insert(dims.end(), dims_.begin() + 1, dims_.end());
    values = RowSparseView(storage_.data()).values;
  }
  return Tensor(type_, std::move(dims), std::make_shared<const Tensor>(storage_), values);
}

Tensor SparseTensor::to_dense() const {
  const int64_t bytes = tensor_bytes(type_, dims_);
  if (bytes > available_memory_bytes()) {
    throw Error(ErrorKind::OutOfMemory, std::string(name(format_)) + " tensor " + dims_text(dims_),
                "needs " + std::to_string(bytes) + " bytes when it is dense, more than there are");
  }
  Tensor dense(type_, dims_);
  const int64_t size = element_bytes(type_);
  if (format_ == SparseFormat::Csr) {
    expand_csr(CsrView(storage_.data()), dims_[1], size, 0, dims_[0], dense.mutable_data());
  } else {
    expand_row_sparse(RowSparseView(storage_.data()), dims_[0], row_elements(dims_) * size, 0,
                      stored(), dense.mutable_data());
  }
  return dense;
}

}  // namespace tessera
