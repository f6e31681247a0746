// Elementwise work on contiguous storage, in any dense layout: one candidate for all of them. If
// the layout pads channels, the padding is set to zero afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "base/chain.h"
#include "base/context.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// The work: a function of the first input or arithmetic of the first two, and the steps that
// follow.
struct DenseWork {
  std::vector<int32_t> nodes;
  // The operands, all of `type`; a value may occur several times.
  std::vector<int32_t> inputs;
  int32_t output = -1;
  plugin::Type type;
  // The operands of all steps are indices into `inputs`.
  std::vector<PostOperation> operations;
};

// Offers one candidate whose ports have TESSERA_LAYOUT_ANY_DENSE. The output may overwrite the
// first input. False if oneDNN has no such primitive or, unless `accepts_reference`, only its
// reference implementation.
bool offer_dense(Context& context, const DenseWork& work, bool accepts_reference);

}  // namespace tessera::onednn
