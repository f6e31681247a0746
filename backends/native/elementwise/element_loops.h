// The loops of elementwise kernels, and how to find them. Each is compiled for every instruction
// set that Highway supports, and found once, when a kernel is proposed.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::native {

// The parameters of a function besides its operands.
struct Parameters {
  float alpha = 0;
  float beta = 0;
  const uint8_t* table = nullptr;  // 256 results, of functions of single bytes
};

// to[i] = f(from[0][i], from[1][i], ...) for i in [0, count). If their elements have the same size,
// `to` may be one of the operands; else it overlaps none of them.
struct LoopCall {
  const void* from[3] = {};
  void* to = nullptr;
  int64_t count = 0;
  Parameters parameters = {};
};
using Loop = void (*)(const LoopCall& call);

// The forms of one function. The bits of the index say which operands are scalars, one element for
// all results. For binary functions, bit 0 is the left and bit 1 the right operand (never both);
// of functions of three operands, bit 0 is the second one and bit 1 the third one (perhaps both).
// Their first operand is never a scalar.
struct LoopSet {
  Loop forms[4] = {};
  // The forms with streaming stores; the caller calls hwy::FlushStream(). Null if there is no such
  // form.
  Loop streaming[4] = {};

  bool is_empty() const { return forms[0] == nullptr; }
};

// All of these give an empty set if there is no such loop. `type` is that of the operands
// (TESSERA_FLOAT32, ...).

// Functions from float32 to float32, by ONNX's name; and "GeluTanh", "Clip" (alpha to beta),
// "Scale" (by alpha), "Square", "Cube", "SqrtPow" (the power of 0.5). Some of them on float64, too.
LoopSet find_unary_loops(std::string_view op, int32_t type);
// "Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu", "Pow", "ClipMin" and "ClipMax" (Clip with the
// bound as right operand) of floating-point numbers and integers of 4 and 8 bytes.
LoopSet find_arithmetic_loops(std::string_view op, int32_t type);
// Functions with bool results: "Equal", "Less", "LessOrEqual" of numbers of 4 and 8 bytes; "Equal",
// "And", "Or", "Xor", "Not" of bools; "IsNaN", "IsInf" (alpha: negative, beta: positive infinity
// counts if not 0) of float32.
LoopSet find_predicate_loops(std::string_view op, int32_t type);
// Select: a condition, and two operands with elements of this size.
LoopSet find_select_loops(int64_t element_bytes);
// Rarely used functions, compiled for the baseline instruction set only: fallback_loops.cc.
LoopSet find_fallback_loops(std::string_view op, int32_t type);
// Conversions of Cast. If one type is a 16-bit float, the other one is float32.
LoopSet find_cast_loops(int32_t from, int32_t to);
// Conversions to float32 that a conversion to a 16-bit float follows: the result of both is rounded
// once. Empty for types whose numbers are all float32.
LoopSet find_odd_loops(int32_t from);
// From integers of 8 or 16 bits or int32 to float32; and from float32 to integers of 8 or 16 bits.
// The operands are the elements, a scale of float32, and a zero point of the integers' type.
LoopSet find_dequantize_loops(int32_t from);
LoopSet find_quantize_loops(int32_t to);
// A function of bytes by Parameters::table.
LoopSet find_table_loops();
// Copies of elements of this size.
LoopSet find_copy_loops(int64_t element_bytes);

// Copies bytes past the caches; the caller calls hwy::FlushStream().
using StreamCopy = void (*)(const void* from, void* to, int64_t bytes);
StreamCopy find_stream_copy();

}  // namespace tessera::native
