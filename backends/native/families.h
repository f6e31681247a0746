// The families of ops, one file each; native.cc calls them in order.
#pragma once

#include "context.h"

namespace tessera::native {

// Functions of one variable, and arithmetic of tensors of one shape, in any dense layout.
void propose_elementwise(Context& context);

// On values that may be sparse (csr, row_sparse), in that layout.
void propose_sparse_elementwise(Context& context);
void propose_sparse_matmul(Context& context);
void propose_sparse_reduce(Context& context);
void propose_sparse_rows(Context& context);

}  // namespace tessera::native
