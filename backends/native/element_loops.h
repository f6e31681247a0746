// The loops that elementwise kernels are made of, and how to find them. Each is compiled for every
// instruction set that the processor may have, and found once, when a kernel is proposed.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::native {

// What a function has beside its operands.
struct Parameters {
  float alpha = 0;
  float beta = 0;
};

// to[i] = f(from[0][i], from[1][i], ...) for i in [0, count). `to` may be one of the operands where
// elements are of one size, and overlaps none of them otherwise.
struct LoopCall {
  const void* from[3] = {};
  void* to = nullptr;
  int64_t count = 0;
  Parameters parameters = {};
};
using Loop = void (*)(const LoopCall& call);

// The forms of one function. The index tells which operands are one element for all: for functions
// of two, 1 is the left one and 2 the right one (never both); for Select, 1 is the one where the
// condition holds and 2 the other one (or 3, both). The condition is never one for all.
struct LoopSet {
  Loop forms[4] = {};
  // The same with stores that pass by the caches; null where there is no such form.
  Loop streaming[4] = {};

  bool is_empty() const { return forms[0] == nullptr; }
};

// All of these give an empty set where there is no such loop. `type` is that of the operands
// (TESSERA_FLOAT32, ...).

// float32 to float32, by ONNX's name; and "GeluTanh", "Clip" (alpha to beta), "Scale" (by alpha),
// "Square", "Cube", "RootOfPower" (the power of 0.5).
LoopSet find_function_loops(std::string_view op);
// "Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu", "Pow", "AtLeast" and "AtMost" (the bounds of
// Clip, on the right) on floating numbers and integers of 4 and 8 bytes.
LoopSet find_arithmetic_loops(std::string_view op, int32_t type);
// "Equal", "Less", "LessOrEqual" of numbers of 4 and 8 bytes, "Equal", "And", "Or", "Xor", "Not" of
// bools, "IsNaN", "IsInf" (alpha: negative ones, beta: positive ones, where not 0) of float32.
LoopSet find_question_loops(std::string_view op, int32_t type);
// The condition, and two operands of any type with elements of so many bytes.
LoopSet find_select_loops(int64_t element_bytes);
// Whatever is rare: see rare_loops.cc. One code for all processors.
LoopSet find_rare_loops(std::string_view op, int32_t type);
// Conversions as Cast makes them. From or to a 16-bit float, the other type is float32.
LoopSet find_cast_loops(int32_t from, int32_t to);
// Copies elements of so many bytes.
LoopSet find_copy_loops(int64_t element_bytes);

// Copies bytes past the caches.
using StreamCopy = void (*)(const void* from, void* to, int64_t bytes);
StreamCopy find_stream_copy();

}  // namespace tessera::native
