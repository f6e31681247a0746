// Quantised regions: a node with the DequantizeLinear nodes before it and the QuantizeLinear after
// it, as most quantised models state what they mean. A kernel for a region reads and writes
// integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "base/activation.h"
#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// How integers stand for real numbers: (integer - zero point) * scale. Scales are finite and
// positive.
struct Quantization {
  int32_t data_type = TESSERA_UNDEFINED;  // of the integers: 8 or 16 bits, or int32
  std::vector<float> scales = {};         // one, or one for each index of `axis`
  std::vector<int32_t> zero_points = {};  // as many as scales
  int32_t axis = -1;                      // counted from the front; -1: one scale for all elements

  bool is_per_tensor() const { return axis < 0; }
  // Of is_per_tensor().
  float scale() const { return scales.front(); }
  int32_t zero_point() const { return zero_points.front(); }
  bool has_zero_points() const;  // whether one of them is not 0
};

// The smallest and the largest integer of a type of 8 or 16 bits.
struct IntegerLimits {
  int32_t lowest = 0;
  int32_t highest = 0;

  bool operator==(const IntegerLimits&) const = default;
};
IntegerLimits integer_limits(int32_t data_type);

// The integer for a real number, as QuantizeLinear computes it: the quotient in float32, rounded to
// even, plus the zero point, within the limits. NaN becomes the smallest integer.
int32_t quantized_number(float real, float scale, int32_t zero_point, IntegerLimits limits);

// Of a DequantizeLinear or QuantizeLinear (of ONNX or com.microsoft) between float32 numbers and
// integers. nullopt if scales or zero points are no constants, are those of blocks, or have other
// types, or if a scale is not finite and positive.
std::optional<Quantization> quantization_of(const plugin::Node& node);

// Of integers of this type with one scale, as ops on quantised tensors have it. nullopt as above.
std::optional<Quantization> quantization_of(int32_t data_type, const plugin::Value& scale,
                                            const plugin::Value& zero_point);

bool is_dequantize(const plugin::Node& node);
bool is_quantize(const plugin::Node& node);

// An input of the node of a region.
struct QuantizedInput {
  plugin::Value value;                     // what the node reads
  plugin::Value integers = {nullptr, -1};  // what the DequantizeLinear reads, if there is one
  int32_t dequantize = -1;                 // node; -1: none that the region can contain
  Quantization quantization = {};          // if there is one

  bool is_quantized() const { return dequantize >= 0; }
};

// What follows the node of a region.
struct QuantizedOutput {
  plugin::Value value;  // the result: of `quantize`, else of `activation`, else of the node
  std::optional<plugin::Node> activation = {};  // a Relu, or a Clip with constant bounds
  Activation function = {};                     // that of `activation`, or none
  std::optional<plugin::Node> quantize = {};
  Quantization quantization = {};  // of `quantize`

  bool is_quantized() const { return quantize.has_value(); }
};

// A node with what surrounds it. Each part may be missing: a kernel that needs it must refuse.
// A DequantizeLinear whose output something else reads is not part of a region, and neither is
// anything after an output that something else reads.
struct QuantizedRegion {
  plugin::Node node;
  std::vector<QuantizedInput> inputs;  // as the node has them; those that are left out, too
  QuantizedOutput output;

  // All nodes, ascending.
  std::vector<int32_t> nodes() const;
  // Whether the first `count` inputs are integers of this type with one scale each.
  bool has_inputs_of(int32_t data_type, size_t count) const;
  // The integers to which the activation limits the result: those of the type if there is none.
  // Requires a quantised output with one scale. (QuantizeLinear is monotonic, so limits may be
  // applied to its result.)
  IntegerLimits limits() const;
};

// The region around a node with one output. Shapes need not be known.
QuantizedRegion region_around(const plugin::Graph& graph, const plugin::Node& node);

// The flags of a candidate for these nodes: a region is computed in one pass over memory.
inline uint32_t flags_of_region(const std::vector<int32_t>& nodes) {
  return nodes.size() > 1 ? uint32_t{TESSERA_CANDIDATE_ONE_PASS} : 0U;
}

// For kernels that read bytes at any address: callers need not copy arrays that are not aligned.
inline void accept_unaligned(plugin::Candidate& candidate) {
  for (plugin::InputPort& port : candidate.inputs) port.alignment_bytes = 1;
}

inline bool is_byte_type(int32_t data_type) {
  return data_type == TESSERA_INT8 || data_type == TESSERA_UINT8;
}

// Calls `offer` for each node of these ops of com.microsoft. If it throws, the node is refused for
// that reason.
void for_each_of_microsoft(plugin::ProposeContext& context,
                           std::initializer_list<std::string_view> ops,
                           const std::function<void(const plugin::Node& node)>& offer);

}  // namespace tessera::native
