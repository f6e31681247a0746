// Folds a BatchNormalization into the Conv that feeds it: the convolution's weights and bias are
// multiplied by scale / sqrt(variance + epsilon), computed in double, per output channel.
//   Needs:  constant weights, bias and statistics, so after fold_constants; no identity between the
//           nodes, so after remove_identities.
//   Result: no inference-mode BatchNormalization that is the only reader of a Conv's result, unless
//           the result is an output or kept, or a folded number would not be finite. The Conv then
//           produces the output of the BatchNormalization, under its name.
//   Order:  before passes that fuse what follows a Conv.
// Statistics change during training, so the Conv is marked inference_only.
#pragma once

#include "rewrite/pipeline.h"

namespace tessera {

Graph fold_batch_norm(Graph graph, const PassContext& context);

}  // namespace tessera
