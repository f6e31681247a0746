// Replaces an Einsum of two inputs by a MatMul, with the Transpose and Reshape nodes that it needs:
// libraries are fast at matrix products, and few know Einsum.
//   Needs:  types inferred.
//   Result: no Einsum of two inputs, except those with an index twice in one input, with a sum over
//           an index of one input alone, with a length of 0, with an axis that is broadcast, or
//           with more unknown lengths than a Reshape can name.
//   Order:  before fold_constants, which transposes constant inputs.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph lower_einsum(Graph graph, const PassContext& context);

}  // namespace tessera
