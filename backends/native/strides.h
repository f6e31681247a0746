// Where the elements of operands lie, seen from a result that they are stretched to. Axes are those
// of the result's storage: in a layout with blocks of channels there is one more than dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::native {

// The sizes of storage, outermost first: 'row_major', 'nhwc', 'nchw8c' or 'nchw16c'. Padding
// counts as elements.
std::vector<int64_t> storage_sizes(const std::string& layout, const std::vector<int64_t>& dims);

// How an operand is stretched to `result_dims`, which lie in `result_layout`.
struct Stretched {
  std::string layout;         // of the operand: the result's, or row_major
  std::vector<int64_t> dims;  // as many as the result's
};

// For each axis of the result's storage: elements between neighbours, 0 where the operand has but
// one for all. Of a row_major operand in a result with blocks: its channels are 1, or a multiple of
// a block, or `is_padded` says that zeros follow up to one.
std::vector<int64_t> strides_in(const std::string& result_layout,
                                const std::vector<int64_t>& result_dims, const Stretched& operand,
                                bool is_padded = false);

// The axes of a loop over a result and its operands, as few as there can be.
struct LoopAxes {
  std::vector<int64_t> sizes;                 // outermost first; never empty
  std::vector<std::vector<int64_t>> strides;  // of each operand, for each axis
};

// Leaves out axes of one element and joins neighbours that are one for all operands.
LoopAxes joined(const std::vector<int64_t>& sizes,
                const std::vector<std::vector<int64_t>>& strides);

}  // namespace tessera::native
