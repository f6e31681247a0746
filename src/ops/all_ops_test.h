// The registry that tests share.
#pragma once

#include "ops/registry.h"

namespace tessera {

// All ops of this build.
inline const ops::Registry& all_ops() {
  static const ops::Registry kRegistry = ops::make_registry();
  return kRegistry;
}

}  // namespace tessera
