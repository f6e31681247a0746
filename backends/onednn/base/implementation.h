// Which implementations of oneDNN are proposed.
#pragma once

#include <cstdint>
#include <string_view>

#include "dnnl.hpp"

namespace tessera::onednn {

// Whether it is the reference code of the library: correct, but tens of times slower than code for
// the processor.
inline bool is_reference(const dnnl::primitive_desc_base& description) {
  return std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos;
}

// Whether the primitive or its post-operations may be computed by the portable code of the library,
// whose Sigmoid gives 0 for NaN. `implementation` is impl_info_str().
inline bool has_portable_functions(std::string_view implementation) {
  return implementation.find("ref") != std::string_view::npos ||
         implementation.find("gemm") != std::string_view::npos;
}

// Up to this many elements, reference code may be the fastest, because it starts quickly.
inline constexpr int64_t kMaxReferenceElements = int64_t{1} << 16;

// Whether a primitive for this many elements is offered.
inline bool is_worth_offering(const dnnl::primitive_desc_base& description, int64_t elements) {
  return !is_reference(description) || elements <= kMaxReferenceElements;
}

}  // namespace tessera::onednn
