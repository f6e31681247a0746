#include "tune/bounds.h"

#include <algorithm>

#include "ops/work.h"
#include "tessera/backend_abi.h"

namespace tessera::tuning {
namespace {

// Winograd's F(4x4, 3x3) needs 36 multiplications where 144 stood.
constexpr double kFastAlgorithms = 4;
// Of matrix units, beside vector units for float32.
constexpr double kBFloat16Speed = 16;

}  // namespace

bool is_product(const std::string& op) {
  return op == "Conv" || op == "ConvTranspose" || op == "MatMul" || op == "Gemm";
}

double bound_seconds(const Graph& group, const ops::Registry& registry, const ProcessorSpeed& speed,
                     int threads, int precision) {
  double flops = 0;
  for (const Node& node : group.nodes) {
    const auto work = static_cast<double>(ops::node_flops(group, node, registry).value_or(0));
    // Only products of matrices come near the processor's peak; the others need fewer operations
    // than they are counted for where a library fuses or skips them.
    const bool is_convolution = node.op == "Conv" || node.op == "ConvTranspose";
    if (is_product(node.op)) flops += is_convolution ? work / kFastAlgorithms : work;
  }
  if (precision == TESSERA_PRECISION_BFLOAT16) flops /= kBFloat16Speed;
  // Outputs alone: a kernel that picks a part of its input need not read the rest.
  double bytes = 0;
  for (const ValueId output : group.outputs) {
    bytes += static_cast<double>(type_bytes(group[output].type).value_or(0));
  }
  return std::max(flops / speed.flops_per_second, bytes / speed.bytes_per_second) /
         std::max(1, threads);
}

}  // namespace tessera::tuning
