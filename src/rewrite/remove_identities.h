// Removes nodes that return their first input unchanged: Identity, Dropout unless training, Cast to
// the same type, Transpose that moves nothing, and reshaping ops whose input and output have the
// same known shape.
//   Needs:  types inferred; Dropout's training_mode constant, so after fold_constants.
//   Result: no such node, except between two names that must both be kept (a graph input or a
//           constant that is also an output, two outputs).
//   Order:  before passes that match neighbouring nodes, which an identity in between would hide.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph remove_identities(Graph graph, const PassContext& context);

}  // namespace tessera
