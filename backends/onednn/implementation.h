// Which of oneDNN's implementations are worth offering.
#pragma once

#include <cstdint>
#include <string_view>

#include "dnnl.hpp"

namespace tessera::onednn {

// The library's own reference code: right, but tens of times slower than what is written for the
// processor.
inline bool is_reference(const dnnl::primitive_desc_base& description) {
  return std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos;
}

// Whether functions behind the primitive, or it itself, may be computed by the library's portable
// code, whose Sigmoid gives 0 for NaN. `implementation` is impl_info_str().
inline bool has_portable_functions(std::string_view implementation) {
  return implementation.find("ref") != std::string_view::npos ||
         implementation.find("gemm") != std::string_view::npos;
}

// Up to so many elements reference code may be the best there is, as it starts quickly.
inline constexpr int64_t kMostReferenceElements = int64_t{1} << 16;

// Whether such a primitive over so many elements should be offered beside others.
inline bool is_worth_offering(const dnnl::primitive_desc_base& description, int64_t elements) {
  return !is_reference(description) || elements <= kMostReferenceElements;
}

}  // namespace tessera::onednn
