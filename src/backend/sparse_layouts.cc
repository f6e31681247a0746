#include "backend/layouts.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "backend/contract/run_context.h"
#include "base/tensor/sparse_storage.h"
#include "tessera/backend_sparse.h"
#include "tessera/tensor.h"

namespace tessera {
namespace {

using plugin::CsrTarget;
using plugin::CsrView;
using plugin::RowSparseTarget;
using plugin::RowSparseView;

// The minimum number of bytes that one thread reads or writes.
constexpr int64_t kGrainBytes = 1 << 16;

struct DenseRows {
  explicit DenseRows(const tessera_buffer& buffer) {
    const std::span<const int64_t> dims(buffer.dims, static_cast<size_t>(buffer.rank));
    size = element_bytes(static_cast<DataType>(buffer.data_type));
    rows = dims[0];
    width = element_count(dims.subspan(1));
    grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, width * size));
  }
  int64_t size = 0;  // bytes per element
  int64_t rows = 0;
  int64_t width = 0;  // elements per row
  int64_t grain = 0;  // in rows
};

int32_t report_excess(const SparseForm& form, int64_t found, tessera_error* error) {
  const std::string what = form.format == SparseFormat::Csr ? "elements" : "rows";
  const std::string message = "expected at most " + std::to_string(form.capacity) + " " + what +
                              " that are not zero (the capacity of " + text(form) + "), found " +
                              std::to_string(found) +
                              "; bind with a layout that has room for them, such as '" +
                              std::string(name(form.format)) + ":" + std::to_string(found) + "'";
  error->kind = TESSERA_INVALID_ARGUMENT;
  std::strncpy(error->message, message.c_str(), sizeof(error->message) - 1);
  return TESSERA_INVALID_ARGUMENT;
}

int32_t to_csr(const SparseForm& form, ThreadPool& pool, const DenseRows& dense,
               const tessera_buffer& from, const tessera_buffer& to, tessera_error* error) {
  const CsrTarget target(to.data, dense.rows, form.capacity, dense.size);
  const auto* elements = static_cast<const char*>(from.data);
  const int64_t row_bytes = dense.width * dense.size;
  target.offsets[0] = 0;
  pool.parallel_for(dense.rows, dense.grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      target.offsets[row + 1] = count_nonzero(elements + row * row_bytes, dense.width, dense.size);
    }
  });
  for (int64_t row = 0; row < dense.rows; ++row) target.offsets[row + 1] += target.offsets[row];
  const int64_t stored = target.offsets[dense.rows];
  if (stored > form.capacity) return report_excess(form, stored, error);
  pool.parallel_for(dense.rows, dense.grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = target.offsets[row];
      compress_row(elements + row * row_bytes, dense.width, dense.size, target.columns + at,
                   target.values_as<char>() + at * dense.size);
    }
  });
  target.header->stored = stored;
  return TESSERA_OK;
}

int32_t to_row_sparse(const SparseForm& form, ThreadPool& pool, const DenseRows& dense,
                      const tessera_buffer& from, const tessera_buffer& to, tessera_error* error) {
  const int64_t row_bytes = dense.width * dense.size;
  const RowSparseTarget target(to.data, form.capacity, row_bytes);
  const auto* elements = static_cast<const char*>(from.data);
  std::vector<uint8_t> is_present(static_cast<size_t>(dense.rows));
  pool.parallel_for(dense.rows, dense.grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      is_present[static_cast<size_t>(row)] =
          count_nonzero(elements + row * row_bytes, dense.width, dense.size) > 0 ? 1 : 0;
    }
  });
  const int64_t stored = std::count(is_present.begin(), is_present.end(), uint8_t{1});
  if (stored > form.capacity) return report_excess(form, stored, error);
  int64_t at = 0;
  for (int64_t row = 0; row < dense.rows; ++row) {
    if (is_present[static_cast<size_t>(row)] != 0) target.rows[at++] = row;
  }
  pool.parallel_for(stored, dense.grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      std::memcpy(target.values_as<char>() + index * row_bytes,
                  elements + target.rows[index] * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
  target.header->stored = stored;
  return TESSERA_OK;
}

}  // namespace

int32_t sparse_to_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* /*error*/) {
  const SparseForm& form = *static_cast<const SparseForm*>(self);
  ThreadPool& pool = RunContext::pool_of(context);
  const DenseRows dense(*to);
  if (form.format == SparseFormat::Csr) {
    const CsrView view(from->data);
    pool.parallel_for(dense.rows, dense.grain, [&](int64_t begin, int64_t end) {
      expand_csr(view, dense.width, dense.size, begin, end, to->data);
    });
    return TESSERA_OK;
  }
  const RowSparseView view(from->data);
  const int64_t row_bytes = dense.width * dense.size;
  if (view.stored() == 0) expand_row_sparse(view, dense.rows, row_bytes, 0, 0, to->data);
  pool.parallel_for(view.stored(), dense.grain, [&](int64_t begin, int64_t end) {
    expand_row_sparse(view, dense.rows, row_bytes, begin, end, to->data);
  });
  return TESSERA_OK;
}

int32_t sparse_from_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                            const tessera_buffer* to, tessera_error* error) {
  const SparseForm& form = *static_cast<const SparseForm*>(self);
  ThreadPool& pool = RunContext::pool_of(context);
  const DenseRows dense(*from);
  return form.format == SparseFormat::Csr ? to_csr(form, pool, dense, *from, *to, error)
                                          : to_row_sparse(form, pool, dense, *from, *to, error);
}

}  // namespace tessera
