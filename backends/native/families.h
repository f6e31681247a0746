// The families of ops, one file each; native.cc calls them in order.
#pragma once

#include "context.h"

namespace tessera::native {

// Functions of one variable, and arithmetic of tensors of one shape, in any dense layout.
void propose_elementwise(Context& context);

}  // namespace tessera::native
