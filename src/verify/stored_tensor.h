// A tensor in guarded memory, in any layout.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/layouts.h"
#include "base/parallel.h"
#include "tessera/backend_abi.h"
#include "tessera/tensor.h"
#include "verify/guarded_memory.h"

namespace tessera::verification {

// What a buffer is filled with before somebody is to write it: no number that a kernel gives.
inline constexpr uint8_t kGarbage = 0xFF;

struct StoredTensor {
  TensorType type;
  LayoutId layout;
  std::shared_ptr<GuardedMemory> memory;  // shared where an output lies in place of an input
  std::vector<int64_t> strides = {};      // in elements; empty: dense

  // Points into this.
  tessera_buffer face(int32_t request = 0) const;
};

// Storage of `type` in `layout`, which must hold it.
StoredTensor make_storage(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                          uint8_t fill = kGarbage,
                          int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES,
                          Guard guard = Guard::Bytes);

// Row-major, with the elements of `tensor`.
StoredTensor store(const Tensor& tensor);
// The same without a copy: `tensor` lies in pages that nobody may write to, between fences.
StoredTensor store_fenced(const Tensor& tensor);
Tensor read_row_major(const StoredTensor& stored);

// A dense copy of what lies with strides from byte `offset` of the memory on.
StoredTensor gathered(const LayoutTable& layouts, const StoredTensor& strided, int64_t offset = 0);

// A copy with gaps between rows and elements, which hold `fill`; nullopt in layouts without
// strides.
std::optional<StoredTensor> spread(const LayoutTable& layouts, const StoredTensor& dense,
                                   uint8_t fill, int64_t alignment_bytes);

// Whether the gaps hold what they held: all bytes that are no element's.
bool has_gaps_of(const LayoutTable& layouts, const StoredTensor& spread, uint8_t fill);

TensorType type_of(const Tensor& tensor);

// Converts along the table's route. Throws Error where a conversion fails.
StoredTensor to_layout(const LayoutTable& layouts, LayoutId layout, const StoredTensor& from,
                       ThreadPool& pool, Guard guard = Guard::Bytes);

// For each stored element whether it is padding, told by converting a tensor without zeros.
std::vector<bool> padding_of(const LayoutTable& layouts, LayoutId layout, const TensorType& type,
                             ThreadPool& pool);

// "" or the first padding that does not hold zero.
std::string explain_padding(const StoredTensor& stored, const std::vector<bool>& is_padding);

}  // namespace tessera::verification
