// Products of element types other than float32: right rather than fast.
#pragma once

#include <cstdint>

#include "product.h"
#include "tessera/backend.h"

namespace tessera::native {

// `addend` is null where there is none. All are elements of the type that it was found for.
using PlainProduct = void (*)(plugin::RunContext& context, const Product& product, const void* left,
                              const void* right, const void* addend, void* to);

// Null where there is none for this data type.
PlainProduct find_plain_product(int32_t data_type);

}  // namespace tessera::native
