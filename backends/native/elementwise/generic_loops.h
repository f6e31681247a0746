// Loops over elements of any type, which the compiler vectorizes. Compiled once for each
// instruction set: files that foreach_target.h includes include this header after highway.h; other
// files get the baseline instruction set.
#if defined(TESSERA_NATIVE_GENERIC_LOOPS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_GENERIC_LOOPS_H
#undef TESSERA_NATIVE_GENERIC_LOOPS_H
#else
#define TESSERA_NATIVE_GENERIC_LOOPS_H
#endif

#include <cstdint>

#include "base/streaming.h"
#include "elementwise/element_loops.h"
#include "hwy/highway.h"

// A result may be stored in place of an operand, element by element, but no step depends on another
// one.
#if defined(__clang__)
#define TESSERA_INDEPENDENT_STEPS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TESSERA_INDEPENDENT_STEPS _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Calls step(index) for [0, count), vectorized. Before each strip of elements it prefetches a later
// one of the result and the operands.
template <class Step, class Result, class... Operands>
HWY_INLINE void for_elements(int64_t count, const Step& step, Result* to,
                             const Operands*... operands) {
  constexpr int64_t kStrip = 64;
  const auto prefetch = [](const auto* source) HWY_ATTR {
    for (size_t line = 0; line < sizeof(*source); ++line)
      prefetch_read(source + line * kStrip / sizeof(*source));
  };
  int64_t index = 0;
  for (; index + kStrip <= count; index += kStrip) {
    (prefetch(operands + index), ...);
    for (size_t line = 0; line < sizeof(Result); ++line) {
      prefetch_write(to + index + line * kStrip / sizeof(Result));
    }
    TESSERA_INDEPENDENT_STEPS
    for (int64_t part = 0; part < kStrip; ++part) step(index + part);
  }
  for (; index < count; ++index) step(index);
}

// Unary functions: Result Function::of(T, const Parameters&).
template <class Function, class T, class Result>
void generic_unary(const LoopCall& call) {
  const Parameters parameters = call.parameters;
  const T* from = static_cast<const T*>(call.from[0]);
  Result* to = static_cast<Result*>(call.to);
  for_elements(
      call.count,
      [=](int64_t index) HWY_ATTR { to[index] = Function::of(from[index], parameters); }, to, from);
}

// Binary functions: Result Function::of(T, T).
template <class Function, class T, class Result>
void generic_binary(const LoopCall& call) {
  const T* left = static_cast<const T*>(call.from[0]);
  const T* right = static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  for_elements(
      call.count,
      [=](int64_t index) HWY_ATTR { to[index] = Function::of(left[index], right[index]); }, to,
      left, right);
}

template <class Function, class T, class Result>
void generic_left_scalar(const LoopCall& call) {
  const T left = *static_cast<const T*>(call.from[0]);
  const T* right = static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  for_elements(
      call.count, [=](int64_t index) HWY_ATTR { to[index] = Function::of(left, right[index]); }, to,
      right);
}

template <class Function, class T, class Result>
void generic_right_scalar(const LoopCall& call) {
  const T* left = static_cast<const T*>(call.from[0]);
  const T right = *static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  for_elements(
      call.count, [=](int64_t index) HWY_ATTR { to[index] = Function::of(left[index], right); }, to,
      left);
}

template <class Function, class T, class Result = T>
constexpr LoopSet generic_unary_loops() {
  return {{generic_unary<Function, T, Result>}};
}

template <class Function, class T, class Result = T>
constexpr LoopSet generic_binary_loops() {
  return {{generic_binary<Function, T, Result>, generic_left_scalar<Function, T, Result>,
           generic_right_scalar<Function, T, Result>}};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
