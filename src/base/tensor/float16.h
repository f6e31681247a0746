// The 16-bit floating types are public, because tensors of them are: see tessera/float16.h.
#pragma once

#include "tessera/float16.h"  // IWYU pragma: export
