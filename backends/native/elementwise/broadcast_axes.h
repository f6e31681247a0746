// Strides of operands that broadcast to a result. Axes are those of the storage of the result: a
// layout with blocks of channels has one more than there are dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::native {

// The sizes of the axes of storage, the outermost first, in one of the shared layouts. Padding
// counts as elements.
std::vector<int64_t> storage_sizes(const std::string& layout, const std::vector<int64_t>& dims);

// An operand that broadcasts to a result.
struct BroadcastOperand {
  std::string layout;         // that of the result, or row_major
  std::vector<int64_t> dims;  // with the rank of the result
};

// The stride of the operand for each axis of the storage of the result, in elements; 0 if the
// operand has only one element along the axis. If a row-major operand broadcasts to a result with
// blocks of channels, it must have one channel or whole blocks of channels, unless `is_padded` says
// that zeros fill its last block.
std::vector<int64_t> strides_in(const std::string& result_layout,
                                const std::vector<int64_t>& result_dims,
                                const BroadcastOperand& operand, bool is_padded = false);

// The axes of a loop over a result and its operands, with neighbouring axes merged as far as
// possible.
struct LoopAxes {
  std::vector<int64_t> sizes;                 // outermost first; never empty
  std::vector<std::vector<int64_t>> strides;  // of each operand, for each axis
};

// Leaves out axes of one element and merges neighbouring axes that are contiguous for all operands.
LoopAxes merged_axes(const std::vector<int64_t>& sizes,
                     const std::vector<std::vector<int64_t>>& strides);

}  // namespace tessera::native
