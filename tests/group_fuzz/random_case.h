// Random groups of ONNX nodes, as text that verify/op_case.h reads.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::group_fuzz {

struct RandomCase {
  std::string text;
  // A function that jumps is applied to numbers that are not exact: in one of many millions of
  // elements, a correct kernel may take the other side.
  bool is_fragile = false;
};

// Groups of all element types: functions, comparisons, casts, broadcasts, reductions and softmax on
// tensors of odd sizes. Nothing in them makes errors much larger, so results can be compared. Equal
// `seed`s give equal nodes; `size_seed` decides the sizes. `begins_with_product`: with a matrix
// product or a convolution, to which libraries attach functions.
RandomCase random_case(uint32_t seed, uint32_t size_seed, bool begins_with_product);

}  // namespace tessera::group_fuzz
