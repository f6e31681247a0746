// Comparisons, logical functions, Select, and copies. Included once for each instruction set by
// foreach_target.h: HWY_NAMESPACE differs each time.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "elementwise/element_functions.h"
#include "elementwise/element_loops.h"
#include "tessera/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elementwise/predicate_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, and once for each instruction set too.
#include "base/streaming.h"
#include "elementwise/generic_loops.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class Function, class T>
constexpr LoopSet predicate_loops() {
  return generic_binary_loops<Function, T, uint8_t>();
}

struct NamedLoops {
  std::string_view op;
  int32_t type;
  LoopSet loops;
};
const NamedLoops kPredicates[] = {
    {"And", TESSERA_BOOL, predicate_loops<element::And, uint8_t>()},
    {"Equal", TESSERA_BOOL, predicate_loops<element::Xnor, uint8_t>()},
    {"Equal", TESSERA_FLOAT32, predicate_loops<element::Equal, float>()},
    {"Equal", TESSERA_FLOAT64, predicate_loops<element::Equal, double>()},
    {"Equal", TESSERA_INT32, predicate_loops<element::Equal, int32_t>()},
    {"Equal", TESSERA_INT64, predicate_loops<element::Equal, int64_t>()},
    {"IsInf", TESSERA_FLOAT32, generic_unary_loops<element::IsInf, float, uint8_t>()},
    {"IsNaN", TESSERA_FLOAT32, generic_unary_loops<element::IsNaN, float, uint8_t>()},
    {"Less", TESSERA_FLOAT32, predicate_loops<element::Less, float>()},
    {"Less", TESSERA_FLOAT64, predicate_loops<element::Less, double>()},
    {"Less", TESSERA_INT32, predicate_loops<element::Less, int32_t>()},
    {"Less", TESSERA_INT64, predicate_loops<element::Less, int64_t>()},
    {"LessOrEqual", TESSERA_FLOAT32, predicate_loops<element::LessOrEqual, float>()},
    {"LessOrEqual", TESSERA_FLOAT64, predicate_loops<element::LessOrEqual, double>()},
    {"LessOrEqual", TESSERA_INT32, predicate_loops<element::LessOrEqual, int32_t>()},
    {"LessOrEqual", TESSERA_INT64, predicate_loops<element::LessOrEqual, int64_t>()},
    {"Not", TESSERA_BOOL, generic_unary_loops<element::Not, uint8_t, uint8_t>()},
    {"Or", TESSERA_BOOL, predicate_loops<element::Or, uint8_t>()},
    {"Xor", TESSERA_BOOL, predicate_loops<element::Xor, uint8_t>()},
};

template <class T, bool kIsYesOne, bool kIsNoOne>
void select(const LoopCall& call) {
  const auto* condition = static_cast<const uint8_t*>(call.from[0]);
  const T* yes = static_cast<const T*>(call.from[1]);
  const T* no = static_cast<const T*>(call.from[2]);
  T* to = static_cast<T*>(call.to);
  const T yes_one = *yes;
  const T no_one = *no;
  const auto step = [=](int64_t index) HWY_ATTR {
    // Both are read, so that the condition selects but does not branch.
    const T if_yes = kIsYesOne ? yes_one : yes[index];
    const T if_no = kIsNoOne ? no_one : no[index];
    to[index] = condition[index] != 0 ? if_yes : if_no;
  };
  for_elements(call.count, step, to, condition, kIsYesOne ? no : yes, kIsNoOne ? yes : no);
}

template <class T>
constexpr LoopSet kSelect = {{select<T, false, false>, select<T, true, false>,
                              select<T, false, true>, select<T, true, true>}};

// The copies of the C library are as fast as any, and stream if that pays.
template <int64_t kBytes>
void copy(const LoopCall& call) {
  if (call.to == call.from[0]) return;
  std::memcpy(call.to, call.from[0], static_cast<size_t>(call.count * kBytes));
}

template <int64_t kBytes>
constexpr LoopSet kCopy = {{copy<kBytes>}, {copy<kBytes>}};

void stream_copy(const void* from, void* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLineBytes);
  int64_t index = past == 0 ? 0 : std::min(bytes, kLineBytes - past);
  std::memcpy(target, source, static_cast<size_t>(index));
  for (; index + lanes <= bytes; index += lanes) {
    hn::Stream(hn::LoadU(d, source + index), d, target + index);
  }
  std::memcpy(target + index, source + index, static_cast<size_t>(bytes - index));
}

}  // namespace

LoopSet predicate_loops_of(std::string_view op, int32_t type) {
  for (const NamedLoops& named : kPredicates) {
    if (named.op == op && named.type == type) return named.loops;
  }
  return {};
}

LoopSet select_loops_of(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return kSelect<uint8_t>;
    case 2:
      return kSelect<uint16_t>;
    case 4:
      return kSelect<uint32_t>;
    case 8:
      return kSelect<uint64_t>;
    default:
      return {};
  }
}

LoopSet copy_loops_of(int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return kCopy<1>;
    case 2:
      return kCopy<2>;
    case 4:
      return kCopy<4>;
    case 8:
      return kCopy<8>;
    default:
      return {};
  }
}

StreamCopy stream_copy_here() { return stream_copy; }

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(predicate_loops_of);
HWY_EXPORT(select_loops_of);
HWY_EXPORT(copy_loops_of);
HWY_EXPORT(stream_copy_here);

LoopSet find_predicate_loops(std::string_view op, int32_t type) {
  return HWY_DYNAMIC_DISPATCH(predicate_loops_of)(op, type);
}

LoopSet find_select_loops(int64_t element_bytes) {
  return HWY_DYNAMIC_DISPATCH(select_loops_of)(element_bytes);
}

LoopSet find_copy_loops(int64_t element_bytes) {
  return HWY_DYNAMIC_DISPATCH(copy_loops_of)(element_bytes);
}

StreamCopy find_stream_copy() { return HWY_DYNAMIC_DISPATCH(stream_copy_here)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
