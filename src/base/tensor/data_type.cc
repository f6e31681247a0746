#include "tessera/data_type.h"

#include <array>

namespace tessera {
namespace {

struct Facts {
  std::string_view name;
  int64_t bytes;
};

// Indexed by DataType.
constexpr std::array<Facts, 17> kFacts = {{
    {"undefined", 0},
    {"bool", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"uint8", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"string", 0},
    {"sequence", 0},
    {"map", 0},
}};

}  // namespace

int64_t element_bytes(DataType type) { return kFacts[static_cast<size_t>(type)].bytes; }

std::string_view name(DataType type) { return kFacts[static_cast<size_t>(type)].name; }

std::optional<DataType> data_type_from_name(std::string_view text) {
  constexpr auto kLast = static_cast<size_t>(DataType::String);
  for (size_t index = 1; index <= kLast; ++index) {
    if (kFacts[index].name == text) return static_cast<DataType>(index);
  }
  return std::nullopt;
}

bool is_floating(DataType type) { return type >= DataType::Float16 && type <= DataType::Float64; }

bool is_integer(DataType type) { return type >= DataType::Int8 && type <= DataType::UInt64; }

bool is_signed_integer(DataType type) { return type >= DataType::Int8 && type <= DataType::Int64; }

}  // namespace tessera
