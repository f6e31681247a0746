// The sparse form of a value: the format and the maximum number of stored elements or rows.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tessera/sparse_tensor.h"

namespace tessera {

struct SparseForm {
  SparseFormat format = SparseFormat::Csr;
  int64_t capacity = 0;  // max number of elements (csr) or rows (row_sparse), <= max_stored()
  auto operator<=>(const SparseForm&) const = default;
};

// "csr:400000": the name in layouts and reports.
std::string text(const SparseForm& form);

// The decade of stored/total: "1e-2" if 0.01 <= stored/total < 0.1, "1e0" if they are equal, at
// least "1e-9"; "0" if nothing is stored. A key of the prices of sparse kernels. Pure; requires 0
// <= stored <= total.
std::string density_bucket(int64_t stored, int64_t total);

}  // namespace tessera
