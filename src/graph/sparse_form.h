// How a value may be stored sparsely: the format, and how much of it at most.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tessera/sparse_tensor.h"

namespace tessera {

struct SparseForm {
  SparseFormat format = SparseFormat::Csr;
  int64_t capacity = 0;  // elements (csr) or rows (row_sparse), at most most_stored()
  auto operator<=>(const SparseForm&) const = default;
};

// "csr:400000": how layouts and reports name it.
std::string text(const SparseForm& form);

// The power of ten that `stored` of `total` reaches: "1e-2" for 0.01 <= stored/total < 0.1, "1e0"
// for all, at least "1e-9"; "0" where nothing is stored. Prices of sparse kernels are kept by it.
// Pure; needs 0 <= stored <= total.
std::string density_bucket(int64_t stored, int64_t total);

}  // namespace tessera
