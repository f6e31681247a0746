// What targets.cc adds to Highway's choice of an instruction set.
#pragma once

namespace tessera::native {

// Whether kernels may use instructions for dot products of bytes, which no target of Highway 1.0
// implies. The processor may lack them.
bool may_use_dot_products();

}  // namespace tessera::native
