#include "ops/normalize.h"

namespace tessera::ops {

int64_t normalization_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs), 8).value();
}

}  // namespace tessera::ops
