// The families of ops, one file each. Each offers what oneDNN can compute of its ops in
// context.graph(), alone and in groups, and refuses the rest with a reason.
#pragma once

#include "context.h"

namespace tessera::onednn {

void propose_convolutions(Context& context);  // and deconvolutions
void propose_poolings(Context& context);

}  // namespace tessera::onednn
