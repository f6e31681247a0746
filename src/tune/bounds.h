// How fast a group of nodes could be at best: the roofline model (Williams, Waterman, Patterson,
// 2009).
#pragma once

#include <string>

#include "base/processor.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::tuning {

// Whether an op multiplies matrices: what comes near the processor's peak.
bool is_product(const std::string& op);

// Seconds that no kernel for `group` on `threads` threads can undercut, for what `speed` says of
// one thread; 0 where its work is not known. Convolutions are given a quarter of their
// multiplications, which is what fast algorithms need. What lies in the caches is read at their
// speed. `precision` is TESSERA_PRECISION_: bfloat16 is given sixteen times the speed of float32.
double bound_seconds(const Graph& group, const ops::Registry& registry, const ProcessorSpeed& speed,
                     int threads, int precision);

}  // namespace tessera::tuning
