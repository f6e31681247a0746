// The layouts csr and row_sparse, which are the host's own: what takes tensors there and back.
// Their bytes are described at tessera_sparse_header.
#pragma once

#include "graph/sparse_form.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The functions of a sparse layout; `self` is the SparseForm, which must outlive the calls. Going
// sparse fails with TESSERA_INVALID_ARGUMENT where there is more than the form has room for.
int32_t sparse_to_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* error);
int32_t sparse_from_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                            const tessera_buffer* to, tessera_error* error);

}  // namespace tessera
