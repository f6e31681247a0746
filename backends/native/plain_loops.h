// Loops over elements of any type that the compiler turns into vectors. Compiled once for each
// instruction set: files that foreach_target.h includes include this one after highway.h; others
// get what every processor has.
#if defined(TESSERA_NATIVE_PLAIN_LOOPS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_NATIVE_PLAIN_LOOPS_H
#undef TESSERA_NATIVE_PLAIN_LOOPS_H
#else
#define TESSERA_NATIVE_PLAIN_LOOPS_H
#endif

#include <cstdint>

#include "element_loops.h"
#include "hwy/highway.h"

// A result may lie over an operand, element on element: no step depends on another one.
#if defined(__clang__)
#define TESSERA_INDEPENDENT_STEPS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TESSERA_INDEPENDENT_STEPS _Pragma("GCC ivdep")
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

// Result Function::of(T, const Parameters&).
template <class Function, class T, class Result>
void plain_one(const LoopCall& call) {
  const Parameters parameters = call.parameters;
  const T* from = static_cast<const T*>(call.from[0]);
  Result* to = static_cast<Result*>(call.to);
  const int64_t count = call.count;
  TESSERA_INDEPENDENT_STEPS
  for (int64_t index = 0; index < count; ++index) to[index] = Function::of(from[index], parameters);
}

// Result Function::of(T, T).
template <class Function, class T, class Result>
void plain_two(const LoopCall& call) {
  const T* left = static_cast<const T*>(call.from[0]);
  const T* right = static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  const int64_t count = call.count;
  TESSERA_INDEPENDENT_STEPS
  for (int64_t index = 0; index < count; ++index)
    to[index] = Function::of(left[index], right[index]);
}

template <class Function, class T, class Result>
void plain_left_one(const LoopCall& call) {
  const T left = *static_cast<const T*>(call.from[0]);
  const T* right = static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  const int64_t count = call.count;
  TESSERA_INDEPENDENT_STEPS
  for (int64_t index = 0; index < count; ++index) to[index] = Function::of(left, right[index]);
}

template <class Function, class T, class Result>
void plain_right_one(const LoopCall& call) {
  const T* left = static_cast<const T*>(call.from[0]);
  const T right = *static_cast<const T*>(call.from[1]);
  Result* to = static_cast<Result*>(call.to);
  const int64_t count = call.count;
  TESSERA_INDEPENDENT_STEPS
  for (int64_t index = 0; index < count; ++index) to[index] = Function::of(left[index], right);
}

template <class Function, class T, class Result = T>
constexpr LoopSet plain_function() {
  return {{plain_one<Function, T, Result>}};
}

template <class Function, class T, class Result = T>
constexpr LoopSet plain_pair() {
  return {{plain_two<Function, T, Result>, plain_left_one<Function, T, Result>,
           plain_right_one<Function, T, Result>}};
}

}  // namespace
}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
