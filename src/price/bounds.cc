#include "price/bounds.h"

#include <algorithm>

#include "ops/work.h"
#include "tessera/backend_abi.h"

namespace tessera::tuning {
double bound_seconds(const Graph& group, const ops::Registry& registry, const ProcessorSpeed& speed,
                     int threads, int precision, const PriceTuning& tuning) {
  double flops = 0;
  for (const Node& node : group.nodes) {
    const auto work = static_cast<double>(ops::node_flops(group, node, registry).value_or(0));
    // Only matrix products come near the processor's peak. Other ops may need fewer operations than
    // their formula counts, because libraries fuse or skip some.
    if (!registry.has_trait(node, ops::kProduct)) continue;
    flops += registry.has_trait(node, ops::kConvolution) ? work / tuning.convolution_speedup : work;
  }
  if (precision == TESSERA_PRECISION_BFLOAT16) flops /= tuning.bfloat16_speedup;
  // Counts outputs only, because a kernel that selects a part of its input need not read the rest.
  double bytes = 0;
  for (const ValueId output : group.outputs) {
    bytes += static_cast<double>(type_bytes(group[output].type).value_or(0));
  }
  return std::max(flops / speed.flops_per_second, bytes / speed.bytes_per_second) /
         std::max(1, threads);
}

bool has_product(const Graph& group, const ops::Registry& registry) {
  return std::ranges::any_of(
      group.nodes, [&](const Node& node) { return registry.has_trait(node, ops::kProduct); });
}

}  // namespace tessera::tuning
