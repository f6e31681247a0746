// The kernel for products of bytes, and for convolutions as such.
#pragma once

#include <cstdint>
#include <memory>

#include "quantized/integer_epilogue.h"
#include "tessera/backend.h"

namespace tessera::native {

int64_t integer_workspace(const IntegerWork& work, const SizedProduct& sized, int64_t threads);

std::unique_ptr<plugin::Kernel> make_integer_kernel(const IntegerWork& work,
                                                    const SizedProduct& proposed, int64_t threads);

}  // namespace tessera::native
