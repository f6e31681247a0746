// Reads indices and lists from int32 or int64 tensors in kernels.
#pragma once

#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

inline int64_t integer_at(const TensorView& view, int64_t position) {
  if (view.type == DataType::Int32) return static_cast<const int32_t*>(view.data)[position];
  return static_cast<const int64_t*>(view.data)[position];
}

// The elements of input `index`; empty if it is omitted.
inline std::pmr::vector<int64_t> integers_of(const KernelCall& call, size_t index) {
  std::pmr::vector<int64_t> integers(&call.scratch);
  if (!call.has_input(index)) return integers;
  const TensorView& view = call.inputs[index];
  integers.reserve(static_cast<size_t>(view.elements));
  for (int64_t element = 0; element < view.elements; ++element) {
    integers.push_back(integer_at(view, element));
  }
  return integers;
}

// A list that is an attribute in some versions of the op and an input in others.
inline std::pmr::vector<int64_t> integers_of(const KernelCall& call, std::string_view attribute,
                                             size_t index) {
  const std::vector<int64_t>* given = call.node.attributes.find_ints(attribute);
  if (given == nullptr) return integers_of(call, index);
  return {given->begin(), given->end(), &call.scratch};
}

// The index at `position`, normalised to [0, dim). call.fail()s if it is outside of the axis.
inline int64_t index_at(const KernelCall& call, const TensorView& indices, int64_t position,
                        int64_t dim) {
  const int64_t index = integer_at(indices, position);
  if (index < -dim || index >= dim) {
    call.fail("expected an index in [" + std::to_string(-dim) + ", " + std::to_string(dim) +
              "), found " + std::to_string(index));
  }
  return index < 0 ? index + dim : index;
}

}  // namespace tessera::ops
