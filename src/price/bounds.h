// A lower bound of a group's time: the roofline model (Williams, Waterman, Patterson, 2009).
#pragma once

#include "base/machine/processor.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "price/price_tuning.h"

namespace tessera::tuning {

// Seconds that no kernel for `group` on `threads` threads can undercut, if `speed` is the speed of
// one thread; 0 if its work is unknown. Convolutions count with a quarter of their multiplications,
// as fast algorithms need. Data that fits the caches is read at cache speed. `precision` is
// TESSERA_PRECISION_: bfloat16 is assumed sixteen times as fast as float32.
double bound_seconds(const Graph& group, const ops::Registry& registry, const ProcessorSpeed& speed,
                     int threads, int precision, const PriceTuning& tuning = {});

// Whether the group has a matrix product or convolution.
bool has_product(const Graph& group, const ops::Registry& registry);

}  // namespace tessera::tuning
