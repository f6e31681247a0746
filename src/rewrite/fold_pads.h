// Folds a Pad with zeros into each Conv that reads its result, as its `pads`. Networks that came
// from TensorFlow have such Pads, because its padding "SAME" may differ between the two sides.
//   Needs:  constant pads, so after fold_constants.
//   Result: no Conv reads a Pad of spatial axes by constant zeros, unless pads are negative, or the
//           Conv computes its own (auto_pad is SAME_UPPER or SAME_LOWER). A Pad that nothing else
//           reads is dead.
//   Order:  before remove_dead_nodes, and before passes that look at what a Conv reads.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph fold_pads(Graph graph, const PassContext& context);

}  // namespace tessera
