// Removes nodes that give their first input unchanged: Identity, Dropout when it is not training,
// Cast to the same type, Transpose that moves nothing, and the reshaping ops where input and output
// have the same known shape.
//   Needs:  types inferred; Dropout's training_mode constant, so after fold_constants.
//   Gives:  no such node, but for those between two names that must both live on (a graph input or
//           a constant that is also an output, two outputs).
//   Order:  before the passes that match neighbours, which an identity in between would hide.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph remove_identities(Graph graph, const PassContext& context);

}  // namespace tessera
