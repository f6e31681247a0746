// Tensors that occupy parts of other tensors' storage: checks whether a part fits, and whether
// several parts cover the whole. Plain data; validates what plug-ins claim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/layouts.h"

namespace tessera {

// The position of a tensor in the storage of another one, which is dense in its layout.
struct StoragePart {
  int64_t offset_bytes = 0;
  std::vector<int64_t> strides;  // in elements, one per dimension; empty: dense

  bool is_dense() const { return strides.empty(); }
  bool operator==(const StoragePart&) const = default;
};

// A tensor in a layout that supports it, and its storage size.
struct StoredType {
  TensorType type;
  std::string layout;
  int64_t bytes = 0;
};

// Strides, in elements, of dense storage; nullopt for layouts without strides (all but row_major
// and nhwc).
std::optional<std::vector<int64_t>> dense_strides(const std::string& layout,
                                                  const std::vector<int64_t>& dims);

// Bytes from the first element to the end of the last one; nullopt if they exceed 64 bits.
std::optional<int64_t> extent_bytes(const TensorType& type, const std::vector<int64_t>& strides);

// `part` without its strides if they describe dense storage. There must be one stride per
// dimension.
StoragePart simplified(const StoragePart& part, const StoredType& tensor);

// "" or a phrase that says why `part` cannot be the position of `tensor` in `whole`.
std::string explain_illegal_part(const StoragePart& part, const StoredType& tensor,
                                 const StoredType& whole);

// "" if the parts, each legal and simplified, are disjoint and cover `whole`.
std::string explain_incomplete(const std::vector<StoragePart>& parts,
                               const std::vector<StoredType>& tensors, const StoredType& whole);

}  // namespace tessera
