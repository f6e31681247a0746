// Bytes as real numbers and back, in float64, for tables of functions of bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/refusal.h"
#include "elementwise/program.h"
#include "quantized/region.h"

namespace tessera::native {

// The scale and zero point of a tensor of bytes, which are inputs `scale` and `zero_point` of an op
// on quantised tensors. Throws Failure if they are no constants.
inline Quantization linear_quantization(const plugin::Node& node, int32_t data_type, size_t scale,
                                        size_t zero_point) {
  if (!is_byte_type(data_type)) refuse("takes tensors of bytes only");
  std::optional<Quantization> found =
      quantization_of(data_type, node.input(scale), node.input(zero_point));
  if (!found) refuse("takes constant zero points and positive constant scales only");
  return *std::move(found);
}

// The integer that a byte is.
inline int32_t integer_of_byte(const Quantization& quantization, uint8_t byte) {
  return quantization.data_type == TESSERA_INT8 ? static_cast<int8_t>(byte) : byte;
}

inline double real_of_byte(const Quantization& quantization, uint8_t byte) {
  return static_cast<double>(integer_of_byte(quantization, byte) - quantization.zero_point()) *
         quantization.scale();
}

// The byte for the nearest integer, ties to even, within the limits of the type. NaN becomes the
// smallest integer.
inline uint8_t byte_of_real(const Quantization& quantization, double real) {
  const IntegerLimits limits = integer_limits(quantization.data_type);
  const double lowest = static_cast<double>(limits.lowest) - quantization.zero_point();
  const double highest = static_cast<double>(limits.highest) - quantization.zero_point();
  const double steps = real / quantization.scale();
  const double limited = steps > lowest ? std::min(steps, highest) : lowest;
  return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(limited)) +
                              quantization.zero_point());
}

// The bytes of the same numbers with another scale, rounded as a DequantizeLinear and a
// QuantizeLinear do if `is_exact`, else once.
inline ByteTable rescaling_table(const Quantization& from, const Quantization& to, bool is_exact) {
  ByteTable table;
  for (size_t index = 0; index < table.size(); ++index) {
    const auto byte = static_cast<uint8_t>(index);
    if (is_exact) {
      const auto steps = static_cast<float>(integer_of_byte(from, byte) - from.zero_point());
      table[index] = static_cast<uint8_t>(quantized_number(
          steps * from.scale(), to.scale(), to.zero_point(), integer_limits(to.data_type)));
    } else {
      table[index] = byte_of_real(to, real_of_byte(from, byte));
    }
  }
  return table;
}

inline bool is_identity(const ByteTable& table) {
  for (size_t index = 0; index < table.size(); ++index) {
    if (table[index] != index) return false;
  }
  return true;
}

}  // namespace tessera::native
