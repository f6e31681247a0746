#include "tessera/data_type.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct Case {
  DataType type;
  const char* name;
  int64_t bytes;
  char kind;                // 'f'loating, 's'igned, 'u'nsigned, or '-' for none of these
  int64_t packed_bits = 0;  // of small types
};

const Case kCases[] = {
    {DataType::Undefined, "undefined", 0, '-'},
    {DataType::Bool, "bool", 1, '-'},
    {DataType::Int8, "int8", 1, 's'},
    {DataType::Int16, "int16", 2, 's'},
    {DataType::Int32, "int32", 4, 's'},
    {DataType::Int64, "int64", 8, 's'},
    {DataType::UInt8, "uint8", 1, 'u'},
    {DataType::UInt16, "uint16", 2, 'u'},
    {DataType::UInt32, "uint32", 4, 'u'},
    {DataType::UInt64, "uint64", 8, 'u'},
    {DataType::Float16, "float16", 2, 'f'},
    {DataType::BFloat16, "bfloat16", 2, 'f'},
    {DataType::Float32, "float32", 4, 'f'},
    {DataType::Float64, "float64", 8, 'f'},
    {DataType::String, "string", 0, '-'},
    {DataType::Float8E4M3FN, "float8e4m3fn", 1, '-', 8},
    {DataType::Float8E4M3FNUZ, "float8e4m3fnuz", 1, '-', 8},
    {DataType::Float8E5M2, "float8e5m2", 1, '-', 8},
    {DataType::Float8E5M2FNUZ, "float8e5m2fnuz", 1, '-', 8},
    {DataType::Float8E8M0, "float8e8m0", 1, '-', 8},
    {DataType::Float4E2M1, "float4e2m1", 1, '-', 4},
    {DataType::Int4, "int4", 1, '-', 4},
    {DataType::UInt4, "uint4", 1, '-', 4},
    {DataType::Int2, "int2", 1, '-', 2},
    {DataType::UInt2, "uint2", 1, '-', 2},
};

TEST(DataType, EveryTypeHasItsFacts) {
  for (const Case& row : kCases) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(name(row.type), row.name);
    EXPECT_EQ(element_bytes(row.type), row.bytes);
    EXPECT_EQ(is_floating(row.type), row.kind == 'f');
    EXPECT_EQ(is_signed_integer(row.type), row.kind == 's');
    EXPECT_EQ(is_integer(row.type), row.kind == 's' || row.kind == 'u');
    EXPECT_EQ(is_small(row.type), row.packed_bits > 0);
    EXPECT_EQ(is_small_float(row.type),
              is_small(row.type) && std::string_view(row.name).starts_with("float"));
    EXPECT_EQ(element_bits(row.type), row.packed_bits > 0 ? row.packed_bits : 8 * row.bytes);
  }
}

TEST(DataType, NamesAreReadBack) {
  for (const Case& row : kCases) {
    if (row.type == DataType::Undefined) continue;
    EXPECT_EQ(data_type_from_name(row.name), row.type) << row.name;
  }
  for (const char* wrong : {"", "undefined", "sequence", "Float32", "float", "int"}) {
    EXPECT_EQ(data_type_from_name(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace tessera
