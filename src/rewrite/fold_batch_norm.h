// Folds a BatchNormalization into the Conv that feeds it: the convolution's weights and bias are
// multiplied by scale / sqrt(variance + epsilon), computed in double, once for each output channel.
//   Needs:  weights, bias and statistics constant, so after fold_constants; nothing in between, so
//           after remove_identities.
//   Gives:  no inference-mode BatchNormalization that alone reads a Conv's result, except where the
//           result is an output or kept, or a folded number would not be finite. The Conv then
//           makes what the BatchNormalization made, under that name.
//   Order:  before passes that fuse what follows a Conv.
// Statistics move while training, so the Conv is marked inference_only.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph fold_batch_norm(Graph graph, const PassContext& context);

}  // namespace tessera
