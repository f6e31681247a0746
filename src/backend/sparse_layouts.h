// Conversions to and from the host's sparse layouts, csr and row_sparse. tessera_sparse_header
// documents their bytes.
#pragma once

#include "graph/sparse_form.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The functions of a sparse layout. `self` is the SparseForm, which must outlive the calls.
// Conversion to a sparse layout fails with TESSERA_INVALID_ARGUMENT if the capacity is exceeded.
int32_t sparse_to_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* error);
int32_t sparse_from_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                            const tessera_buffer* to, tessera_error* error);

}  // namespace tessera
