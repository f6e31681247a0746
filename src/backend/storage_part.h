// Tensors that lie in the storage of others: whether one fits there, and whether several make up
// the whole. Plain data; what a plug-in says is checked here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/layouts.h"

namespace tessera {

// Where a tensor lies in the storage of another one, which is dense in its layout.
struct StoragePart {
  int64_t offset_bytes = 0;
  std::vector<int64_t> strides;  // in elements, one for each dimension; empty: dense

  bool is_dense() const { return strides.empty(); }
  bool operator==(const StoragePart&) const = default;
};

// A tensor in a layout that holds it, and what it takes there.
struct StoredType {
  TensorType type;
  std::string layout;
  int64_t bytes = 0;
};

// Strides, in elements, of dense storage; nullopt for layouts in which elements do not lie so: all
// but row_major and nhwc.
std::optional<std::vector<int64_t>> dense_strides(const std::string& layout,
                                                  const std::vector<int64_t>& dims);

// Bytes from the first element to behind the last one; nullopt where they exceed 64 bits.
std::optional<int64_t> extent_bytes(const TensorType& type, const std::vector<int64_t>& strides);

// `part` without strides where they only say that it is dense. Its strides are as many as the
// tensor has dimensions.
StoragePart simplified(const StoragePart& part, const StoredType& tensor);

// "" or what is wrong with `part` as the place of `tensor` in `whole`: a phrase.
std::string explain_illegal_part(const StoragePart& part, const StoredType& tensor,
                                 const StoredType& whole);

// "" where the parts, each legal and simplified, lie apart and leave nothing of `whole` out.
std::string explain_incomplete(const std::vector<StoragePart>& parts,
                               const std::vector<StoredType>& tensors, const StoredType& whole);

}  // namespace tessera
