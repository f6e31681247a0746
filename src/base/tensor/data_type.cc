#include "tessera/data_type.h"

#include <array>

namespace tessera {
namespace {

struct Facts {
  std::string_view name;
  int64_t bits;  // in files
};

// Indexed by DataType.
constexpr std::array<Facts, 27> kFacts = {{
    {"undefined", 0},    {"bool", 8},           {"int8", 8},       {"int16", 16},
    {"int32", 32},       {"int64", 64},         {"uint8", 8},      {"uint16", 16},
    {"uint32", 32},      {"uint64", 64},        {"float16", 16},   {"bfloat16", 16},
    {"float32", 32},     {"float64", 64},       {"string", 0},     {"sequence", 0},
    {"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8}, {"float8e5m2fnuz", 8},
    {"float8e8m0", 8},   {"float4e2m1", 4},     {"int4", 4},       {"uint4", 4},
    {"int2", 2},         {"uint2", 2},          {"map", 0},
}};
static_assert(kFacts.size() == static_cast<size_t>(DataType::Map) + 1);

}  // namespace

int64_t element_bytes(DataType type) { return (element_bits(type) + 7) / 8; }

int64_t element_bits(DataType type) { return kFacts[static_cast<size_t>(type)].bits; }

std::string_view name(DataType type) { return kFacts[static_cast<size_t>(type)].name; }

std::optional<DataType> data_type_from_name(std::string_view text) {
  for (size_t index = 1; index < kFacts.size(); ++index) {
    const auto type = static_cast<DataType>(index);
    const bool is_of_tensors = type != DataType::Sequence && type != DataType::Map;
    if (kFacts[index].name == text && is_of_tensors) return type;
  }
  return std::nullopt;
}

bool is_floating(DataType type) { return type >= DataType::Float16 && type <= DataType::Float64; }

bool is_integer(DataType type) { return type >= DataType::Int8 && type <= DataType::UInt64; }

bool is_signed_integer(DataType type) { return type >= DataType::Int8 && type <= DataType::Int64; }

bool is_small(DataType type) { return type >= DataType::Float8E4M3FN; }

bool is_small_float(DataType type) {
  return type >= DataType::Float8E4M3FN && type <= DataType::Float4E2M1;
}

}  // namespace tessera
