// How a family of ops says why it offers nothing for a node.
#pragma once

#include <string>

#include "tessera/backend.h"

namespace tessera::native {

// Ends the offer for a node. ProposeContext::for_each() refuses the node for this reason.
[[noreturn]] inline void refuse(const std::string& reason) {
  throw plugin::Failure(TESSERA_UNSUPPORTED, reason);
}

// For families whose kernels know the sizes of their float32 tensors when they are built.
inline void check_usable(const plugin::Value& value) {
  if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
    refuse("takes float32 tensors of known shape only");
  }
}

}  // namespace tessera::native
