// A tensor in guarded memory, in any layout.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/layouts.h"
#include "base/threads/parallel.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"
#include "verify/guarded_memory.h"

namespace tessera::verification {

// Fills buffers that will be written: kernels never produce these bits.
inline constexpr uint8_t kGarbage = 0xFF;

struct StoredTensor {
  TensorType type;
  LayoutId layout;
  std::shared_ptr<GuardedMemory> memory;  // shared if an output is in place of an input
  std::vector<int64_t> strides = {};      // in elements; empty: dense

  // Points into this object.
  tessera_buffer abi(int32_t request = 0) const;
};

// Allocates storage for `type` in `layout`, which must support it.
StoredTensor make_storage(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                          uint8_t fill = kGarbage,
                          int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES,
                          GuardPagePool* pages = nullptr);

// Row-major, with the elements of `tensor`.
StoredTensor store(const Tensor& tensor);
// Same as store(), without a copy: `tensor` is in read-only pages between guard pages.
StoredTensor store_in_guard_pages(const Tensor& tensor);
Tensor read_row_major(const StoredTensor& stored);

// A dense copy of a strided tensor that begins at byte `offset` of the memory.
StoredTensor gathered(const LayoutTable& layouts, const StoredTensor& strided, int64_t offset = 0);

// A strided copy; the gaps between rows and elements contain `fill`. nullopt for layouts without
// strides.
std::optional<StoredTensor> spread(const LayoutTable& layouts, const StoredTensor& dense,
                                   uint8_t fill, int64_t alignment_bytes);

// Whether the gaps, all bytes that belong to no element, are unchanged.
bool has_gaps_of(const LayoutTable& layouts, const StoredTensor& spread, uint8_t fill);

TensorType type_of(const Tensor& tensor);

// Converts along the route in the table. Throws Error if a conversion fails.
StoredTensor to_layout(const LayoutTable& layouts, LayoutId layout, const StoredTensor& from,
                       ThreadPool& pool, GuardPagePool* pages = nullptr);

// Whether each stored element is padding, found by converting a tensor without zeros.
std::vector<bool> padding_of(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                             ThreadPool& pool);

// "" or a description of the first padding element that is not zero.
std::string explain_padding(const StoredTensor& stored, const std::vector<bool>& is_padding);

}  // namespace tessera::verification
