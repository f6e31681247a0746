// Loops for functions that models seldom use, or for which there are no vector instructions:
// division and shifts of integers, remainders, integers of 1 and 2 bytes, unsigned integers.
// Compiled for the baseline instruction set.
#include <array>
#include <string_view>

#include "elementwise/element_functions.h"
#include "elementwise/element_loops.h"
#include "elementwise/generic_loops.h"
#include "hwy/highway.h"
#include "tessera/backend.h"

namespace tessera::native {

namespace {

namespace here = HWY_NAMESPACE;

// In the order of kTypes.
constexpr int32_t kTypes[] = {TESSERA_INT8,    TESSERA_INT16,  TESSERA_INT32,  TESSERA_INT64,
                              TESSERA_UINT8,   TESSERA_UINT16, TESSERA_UINT32, TESSERA_UINT64,
                              TESSERA_FLOAT32, TESSERA_FLOAT64};
constexpr size_t kTypeCount = std::size(kTypes);
using Row = std::array<LoopSet, kTypeCount>;

template <class Function>
constexpr Row integers() {
  return {here::generic_binary_loops<Function, int8_t>(),
          here::generic_binary_loops<Function, int16_t>(),
          here::generic_binary_loops<Function, int32_t>(),
          here::generic_binary_loops<Function, int64_t>(),
          here::generic_binary_loops<Function, uint8_t>(),
          here::generic_binary_loops<Function, uint16_t>(),
          here::generic_binary_loops<Function, uint32_t>(),
          here::generic_binary_loops<Function, uint64_t>()};
}

template <class Function>
constexpr Row numbers() {
  Row row = integers<Function>();
  row[8] = here::generic_binary_loops<Function, float>();
  row[9] = here::generic_binary_loops<Function, double>();
  return row;
}

template <class Function>
constexpr Row predicates() {
  return {here::generic_binary_loops<Function, int8_t, uint8_t>(),
          here::generic_binary_loops<Function, int16_t, uint8_t>(),
          here::generic_binary_loops<Function, int32_t, uint8_t>(),
          here::generic_binary_loops<Function, int64_t, uint8_t>(),
          here::generic_binary_loops<Function, uint8_t, uint8_t>(),
          here::generic_binary_loops<Function, uint16_t, uint8_t>(),
          here::generic_binary_loops<Function, uint32_t, uint8_t>(),
          here::generic_binary_loops<Function, uint64_t, uint8_t>()};
}

template <class Function>
constexpr Row unary_integers() {
  return {here::generic_unary_loops<Function, int8_t>(),
          here::generic_unary_loops<Function, int16_t>(),
          here::generic_unary_loops<Function, int32_t>(),
          here::generic_unary_loops<Function, int64_t>(),
          here::generic_unary_loops<Function, uint8_t>(),
          here::generic_unary_loops<Function, uint16_t>(),
          here::generic_unary_loops<Function, uint32_t>(),
          here::generic_unary_loops<Function, uint64_t>()};
}

template <class Function>
constexpr Row unary_numbers() {
  Row row = unary_integers<Function>();
  row[9] = here::generic_unary_loops<Function, double>();
  return row;
}

template <class Function>
constexpr Row signed_only() {
  return {here::generic_unary_loops<Function, int8_t>(),
          here::generic_unary_loops<Function, int16_t>(),
          here::generic_unary_loops<Function, int32_t>(),
          here::generic_unary_loops<Function, int64_t>()};
}

constexpr Row powers() {
  Row row = {};
  row[2] = here::generic_binary_loops<element::Pow, int32_t>();
  row[3] = here::generic_binary_loops<element::Pow, int64_t>();
  row[9] = here::generic_binary_loops<element::Pow, double>();
  return row;
}

constexpr Row double_predicates(LoopSet loops) {
  Row row = {};
  row[9] = loops;
  return row;
}

struct NamedRow {
  std::string_view op;
  Row row;
};
const NamedRow kRows[] = {
    {"Abs", unary_numbers<element::Abs>()},
    {"Add", integers<element::Add>()},
    {"ClipMin", integers<element::ClipMin>()},
    {"ClipMax", integers<element::ClipMax>()},
    {"BitwiseAnd", integers<element::BitwiseAnd>()},
    {"BitwiseNot", unary_integers<element::BitwiseNot>()},
    {"BitwiseOr", integers<element::BitwiseOr>()},
    {"BitwiseXor", integers<element::BitwiseXor>()},
    {"Div", integers<element::Div>()},
    {"Equal", predicates<element::Equal>()},
    {"FloorMod", numbers<element::FloorMod>()},
    {"IsInf", double_predicates(here::generic_unary_loops<element::IsInf, double, uint8_t>())},
    {"IsNaN", double_predicates(here::generic_unary_loops<element::IsNaN, double, uint8_t>())},
    {"Less", predicates<element::Less>()},
    {"LessOrEqual", predicates<element::LessOrEqual>()},
    {"Max", integers<element::Max>()},
    {"Min", integers<element::Min>()},
    {"Mul", integers<element::Mul>()},
    {"Neg", unary_numbers<element::Neg>()},
    {"PRelu", integers<element::PRelu>()},
    {"Pow", powers()},
    {"Relu", signed_only<element::Relu>()},
    {"ShiftLeft", integers<element::ShiftLeft>()},
    {"ShiftRight", integers<element::ShiftRight>()},
    {"Sign", unary_numbers<element::Sign>()},
    {"Sub", integers<element::Sub>()},
    {"TruncatedMod", numbers<element::TruncatedMod>()},
};

}  // namespace

LoopSet find_fallback_loops(std::string_view op, int32_t type) {
  for (const NamedRow& named : kRows) {
    if (named.op != op) continue;
    for (size_t index = 0; index < kTypeCount; ++index) {
      if (kTypes[index] == type) return named.row[index];
    }
  }
  return {};
}

}  // namespace tessera::native
