// The families of ops, one file each. Each proposes candidates for its ops in context.graph(),
// alone and in groups, and refuses the rest with a reason.
#pragma once

#include "base/context.h"

namespace tessera::onednn {

void propose_convolutions(Context& context);  // and deconvolutions
void propose_matmuls(Context& context);       // MatMul and Gemm
void propose_recurrences(Context& context);
void propose_poolings(Context& context);
void propose_normalizations(Context& context);  // with given and with own statistics
void propose_softmaxes(Context& context);
void propose_lrns(Context& context);
void propose_reductions(Context& context);
void propose_resamplings(Context& context);
void propose_concats(Context& context);
void propose_transposes(Context& context);
void propose_broadcasts(Context& context);   // arithmetic of tensors of different shapes
void propose_elementwise(Context& context);  // functions, and arithmetic of tensors of one shape

}  // namespace tessera::onednn
