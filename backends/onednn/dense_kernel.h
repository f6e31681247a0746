// Elementwise work on storage in order, whatever dense layout it is in: one candidate for all of
// them. Where the layout pads channels, the padding is zero again afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "chain.h"
#include "context.h"
#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// What is computed: a function of the first input or an arithmetic of the first two, and what
// follows.
struct DenseWork {
  std::vector<int32_t> nodes;
  // Values that are read, all of `type`; a value may stand here several times.
  std::vector<int32_t> inputs;
  int32_t output = -1;
  plugin::Type type;
  // The first one's `operand` and those behind it are indices into `inputs`.
  std::vector<PostOperation> operations;
};

// One candidate whose ports have TESSERA_LAYOUT_ANY_DENSE. The output may overwrite the first
// input. False where oneDNN has no such primitive, or, unless `accepts_reference`, none worth
// having.
bool offer_dense(Context& context, const DenseWork& work, bool accepts_reference);

}  // namespace tessera::onednn
