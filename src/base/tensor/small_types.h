// The small element types: floats of 8 and 4 bits, integers of 4 and 2 bits. In a tensor each
// element takes a byte; ONNX's files pack those of 4 and 2 bits.
// https://onnx.ai/onnx/technical/float8.html, https://onnx.ai/onnx/technical/float4.html,
// https://onnx.ai/onnx/technical/int4.html
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tessera/data_type.h"

namespace tessera {

// How a number that is no power of two becomes a float8e8m0.
enum class PowerRounding : uint8_t { Up, Down, Nearest };

// How numbers become small floats.
struct SmallFloatRounding {
  // Whether numbers and infinities beyond the range become the largest number of the type, instead
  // of its infinity or NaN. A float4e2m1, which has neither, always saturates.
  bool saturates = true;
  PowerRounding power = PowerRounding::Up;  // of float8e8m0; ties of Nearest go up
};

// The number that each byte stands for; the high bits of a float4e2m1 are ignored. A float holds
// all of them exactly.
const std::array<float, 256>& small_float_values(DataType type);

// The bits of a number, rounded once, to nearest, ties to even. A float4e2m1 has no NaN: NaN
// becomes a zero of the other sign. A float8e8m0 ignores the sign.
uint8_t small_float_bits(DataType type, double number, SmallFloatRounding rounding = {});

// The element of an integer type of which `bits` are the low bits; the others are ignored.
int8_t small_integer(DataType type, uint8_t bits);

// The bytes of `count` elements of a small type in a file.
int64_t packed_bytes(DataType type, int64_t count);

// Whether elements in a file have less than a byte.
bool is_packed(DataType type);

// Elements of is_packed() types as they lie in a file, the first one in the lowest bits. `packed`
// has packed_bytes() for the number of elements.
void unpack(DataType type, std::span<const uint8_t> packed, std::span<uint8_t> elements);
void pack(DataType type, std::span<const uint8_t> elements, std::span<uint8_t> packed);

}  // namespace tessera
