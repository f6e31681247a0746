#include "import/onnx/tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "import/onnx/types.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::InvalidModel, where, message);
}

std::vector<int64_t> checked_dims(const onnx::SparseTensorProto& proto, DataType type,
                                  const std::string& where) {
  if (proto.dims_size() < 1 || proto.dims_size() > kMaxDims) {
    fail(where, "expected 1 to " + std::to_string(kMaxDims) + " dimensions, found " +
                    std::to_string(proto.dims_size()));
  }
  std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  try {
    tensor_bytes(type, dims);
  } catch (const Error& error) {
    fail(where, error.where() + ": " + error.message());
  }
  return dims;
}

// The row-major linear index of a stored element, from its index tuple.
int64_t linear_index(std::span<const int64_t> tuple, const std::vector<int64_t>& dims,
                     int64_t element, const std::string& where) {
  int64_t linear = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (tuple[axis] < 0 || tuple[axis] >= dims[axis]) {
      fail(where, "expected indices of 0 to " + std::to_string(dims[axis] - 1) + " for axis " +
                      std::to_string(axis) + ", found " + std::to_string(tuple[axis]) +
                      " for stored element " + std::to_string(element));
    }
    linear = linear * dims[axis] + tuple[axis];
  }
  return linear;
}

// The linear indices of the stored elements, ascending.
std::vector<int64_t> linear_indices(const Tensor& indices, const std::vector<int64_t>& dims,
                                    int64_t stored, const std::string& where) {
  const int64_t total = element_count(dims);
  const auto rank = static_cast<int64_t>(dims.size());
  const bool is_linear = indices.dims() == std::vector<int64_t>{stored};
  const bool is_tuples = indices.dims() == std::vector<int64_t>{stored, rank};
  if (indices.type() != DataType::Int64 || (!is_linear && !is_tuples)) {
    fail(where, "expected indices of int64 " + std::to_string(stored) + " or " +
                    std::to_string(stored) + "x" + std::to_string(rank) + ", found " +
                    std::string(name(indices.type())) + " " + dims_text(indices.dims()));
  }
  const std::span<const int64_t> given = indices.as<int64_t>();
  std::vector<int64_t> linear(static_cast<size_t>(stored));
  for (int64_t element = 0; element < stored; ++element) {
    const auto at = static_cast<size_t>(element);
    if (is_linear) {
      linear[at] = given[at];
      if (linear[at] < 0 || linear[at] >= total) {
        fail(where, "expected indices of 0 to " + std::to_string(total - 1) + ", found " +
                        std::to_string(linear[at]) + " for stored element " +
                        std::to_string(element));
      }
    } else {
      const auto tuple = given.subspan(at * dims.size(), dims.size());
      linear[at] = linear_index(tuple, dims, element, where);
    }
    if (element > 0 && linear[at] <= linear[at - 1]) {
      fail(where, "expected ascending indices without repetition, found " +
                      std::to_string(linear[at]) + " after " + std::to_string(linear[at - 1]) +
                      " (of row-major order) for stored element " + std::to_string(element));
    }
  }
  return linear;
}

// The rows (along axis 0) that have a stored element.
std::vector<int64_t> present_rows(const std::vector<int64_t>& linear, int64_t width) {
  std::vector<int64_t> rows;
  for (const int64_t index : linear) {
    if (rows.empty() || rows.back() != index / width) rows.push_back(index / width);
  }
  return rows;
}

Tensor list_of(const std::vector<int64_t>& numbers) {
  return Tensor::from<int64_t>(DataType::Int64, {static_cast<int64_t>(numbers.size())}, numbers);
}

SparseTensor make_csr(const std::vector<int64_t>& dims, const std::vector<int64_t>& linear,
                      const Tensor& values) {
  std::vector<int64_t> offsets(static_cast<size_t>(dims[0]) + 1, 0);
  std::vector<int64_t> columns;
  columns.reserve(linear.size());
  for (const int64_t index : linear) {
    ++offsets[static_cast<size_t>(index / dims[1]) + 1];
    columns.push_back(index % dims[1]);
  }
  for (size_t row = 1; row < offsets.size(); ++row) offsets[row] += offsets[row - 1];
  return SparseTensor::csr(dims, list_of(offsets), list_of(columns), values);
}

SparseTensor make_row_sparse(const std::vector<int64_t>& dims, const std::vector<int64_t>& linear,
                             const std::vector<int64_t>& rows, int64_t width,
                             const Tensor& values) {
  std::vector<int64_t> stored_dims = dims;
  stored_dims[0] = static_cast<int64_t>(rows.size());
  Tensor elements(values.type(), stored_dims);
  std::memset(elements.mutable_data(), 0, static_cast<size_t>(elements.bytes()));
  const auto size = static_cast<size_t>(element_bytes(values.type()));
  size_t row = 0;
  for (size_t at = 0; at < linear.size(); ++at) {
    while (rows[row] != linear[at] / width) ++row;
    const auto target = row * static_cast<size_t>(width) + static_cast<size_t>(linear[at] % width);
    std::memcpy(static_cast<char*>(elements.mutable_data()) + target * size,
                static_cast<const char*>(values.data()) + at * size, size);
  }
  return SparseTensor::row_sparse(dims, list_of(rows), elements);
}

// csr stores an offset per row, row_sparse all elements of a stored row. A few bytes of a file must
// not make that exhaust the memory.
void check_size(int64_t bytes, int64_t stored, const std::string& where) {
  constexpr int64_t kMaxBytes = int64_t{1} << 24;
  constexpr int64_t kMaxBytesOfOne = int64_t{1} << 12;
  if (bytes >= 0 && bytes <= kMaxBytes + stored * kMaxBytesOfOne) return;
  throw Error(ErrorKind::Unsupported, where,
              "expected dimensions in proportion to its " + std::to_string(stored) +
                  " stored elements, found some for which rows or offsets take " +
                  (bytes < 0 ? "more than 64 bits count" : std::to_string(bytes)) + " bytes");
}

}  // namespace

void read_sparse(const onnx::SparseTensorProto& proto, TensorReader& tensors,
                 const std::string& where, Value& value) {
  const Tensor values = tensors.read(proto.values(), where + ", values");
  if (values.is_strings()) {
    throw Error(ErrorKind::Unsupported, where, "sparse tensors of strings are not supported");
  }
  const std::vector<int64_t> dims = checked_dims(proto, values.type(), where);
  if (values.rank() != 1) {
    fail(where, "expected values in one dimension, found shape " + dims_text(values.dims()));
  }
  const Tensor indices = tensors.read(proto.indices(), where + ", indices");
  const int64_t stored = values.elements();
  const std::vector<int64_t> linear = linear_indices(indices, dims, stored, where);
  const int64_t width = element_count(std::span(dims).subspan(1));
  const std::vector<int64_t> rows = present_rows(linear, width);
  const bool has_whole_rows =
      (width > 1 || stored == 0) && static_cast<int64_t>(rows.size()) * width == stored;
  const bool is_csr = !has_whole_rows && max_stored(SparseFormat::Csr, dims) >= 0;
  const int64_t bytes =
      sparse_bytes(is_csr ? SparseFormat::Csr : SparseFormat::RowSparse, values.type(), dims,
                   is_csr ? stored : static_cast<int64_t>(rows.size()));
  check_size(bytes, stored, where);
  // Charged twice, because its source arrays are as large.
  tensors.charge(bytes, where);
  tensors.charge(bytes, where);
  SparseTensor made =
      is_csr ? make_csr(dims, linear, values) : make_row_sparse(dims, linear, rows, width, values);
  value.type = Type::tensor(values.type(), shape_from(dims));
  value.constant = Tensor(values.type(), dims, nullptr, nullptr);
  const int64_t dense_bytes = tensor_bytes(values.type(), dims);
  if (dense_bytes <= kMaxExpandedBytes) {
    tensors.charge(dense_bytes, where);
    value.constant = made.to_dense();
  }
  value.sparse_constant = std::make_shared<const SparseTensor>(std::move(made));
}

}  // namespace tessera::onnx_import
