// Loops for what models seldom compute, or what no vector instruction computes: division and
// shifts of integers, remainders, numbers of 1 and 2 bytes, unsigned ones. For every processor.
#include <array>
#include <string_view>

#include "element_functions.h"
#include "element_loops.h"
#include "hwy/highway.h"
#include "plain_loops.h"
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
  return {here::plain_pair<Function, int8_t>(),   here::plain_pair<Function, int16_t>(),
          here::plain_pair<Function, int32_t>(),  here::plain_pair<Function, int64_t>(),
          here::plain_pair<Function, uint8_t>(),  here::plain_pair<Function, uint16_t>(),
          here::plain_pair<Function, uint32_t>(), here::plain_pair<Function, uint64_t>()};
}

template <class Function>
constexpr Row numbers() {
  Row row = integers<Function>();
  row[8] = here::plain_pair<Function, float>();
  row[9] = here::plain_pair<Function, double>();
  return row;
}

template <class Function>
constexpr Row questions() {
  return {here::plain_pair<Function, int8_t, uint8_t>(),
          here::plain_pair<Function, int16_t, uint8_t>(),
          here::plain_pair<Function, int32_t, uint8_t>(),
          here::plain_pair<Function, int64_t, uint8_t>(),
          here::plain_pair<Function, uint8_t, uint8_t>(),
          here::plain_pair<Function, uint16_t, uint8_t>(),
          here::plain_pair<Function, uint32_t, uint8_t>(),
          here::plain_pair<Function, uint64_t, uint8_t>()};
}

template <class Function>
constexpr Row unary_integers() {
  return {here::plain_function<Function, int8_t>(),   here::plain_function<Function, int16_t>(),
          here::plain_function<Function, int32_t>(),  here::plain_function<Function, int64_t>(),
          here::plain_function<Function, uint8_t>(),  here::plain_function<Function, uint16_t>(),
          here::plain_function<Function, uint32_t>(), here::plain_function<Function, uint64_t>()};
}

template <class Function>
constexpr Row unary_numbers() {
  Row row = unary_integers<Function>();
  row[9] = here::plain_function<Function, double>();
  return row;
}

template <class Function>
constexpr Row signed_only() {
  return {here::plain_function<Function, int8_t>(), here::plain_function<Function, int16_t>(),
          here::plain_function<Function, int32_t>(), here::plain_function<Function, int64_t>()};
}

constexpr Row powers() {
  Row row = {};
  row[2] = here::plain_pair<element::Pow, int32_t>();
  row[3] = here::plain_pair<element::Pow, int64_t>();
  row[9] = here::plain_pair<element::Pow, double>();
  return row;
}

constexpr Row double_questions(LoopSet loops) {
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
    {"AtLeast", integers<element::AtLeast>()},
    {"AtMost", integers<element::AtMost>()},
    {"BitwiseAnd", integers<element::BitwiseAnd>()},
    {"BitwiseNot", unary_integers<element::BitwiseNot>()},
    {"BitwiseOr", integers<element::BitwiseOr>()},
    {"BitwiseXor", integers<element::BitwiseXor>()},
    {"Div", integers<element::Div>()},
    {"Equal", questions<element::Equal>()},
    {"FloorMod", numbers<element::FloorMod>()},
    {"IsInf", double_questions(here::plain_function<element::IsInf, double, uint8_t>())},
    {"IsNaN", double_questions(here::plain_function<element::IsNaN, double, uint8_t>())},
    {"Less", questions<element::Less>()},
    {"LessOrEqual", questions<element::LessOrEqual>()},
    {"Max", integers<element::Max>()},
    {"Min", integers<element::Min>()},
    {"Mul", integers<element::Mul>()},
    {"Neg", unary_numbers<element::Neg>()},
    {"PRelu", integers<element::Sloped>()},
    {"Pow", powers()},
    {"Relu", signed_only<element::Relu>()},
    {"ShiftLeft", integers<element::ShiftLeft>()},
    {"ShiftRight", integers<element::ShiftRight>()},
    {"Sign", unary_numbers<element::Sign>()},
    {"Sub", integers<element::Sub>()},
    {"TruncatedMod", numbers<element::TruncatedMod>()},
};

}  // namespace

LoopSet find_rare_loops(std::string_view op, int32_t type) {
  for (const NamedRow& named : kRows) {
    if (named.op != op) continue;
    for (size_t index = 0; index < kTypeCount; ++index) {
      if (kTypes[index] == type) return named.row[index];
    }
  }
  return {};
}

}  // namespace tessera::native
