// The element types of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// No file format depends on the order. `Undefined` is the type of a value that is not inferred yet.
enum class DataType : uint8_t {
  Undefined,
  Bool,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  String,    // text in UTF-8; an element is a std::string
  Sequence,  // a list of tensors (Tensor::sequence()); no tensor has such elements
  // The small types, of which a tensor holds one in each byte: is_small(). The bits of floats are
  // those of ONNX (https://onnx.ai/onnx/technical/float8.html); integers are sign-extended.
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Float8E8M0,  // a power of two
  Float4E2M1,
  Int4,
  UInt4,
  Int2,
  UInt2,
  Map,  // keys and values (Tensor::map()); no tensor has such elements
};

// Bytes of one element in a tensor; 0 for Undefined, String, Sequence and Map, which have no fixed
// size.
int64_t element_bytes(DataType type);

// Bits of one element in ONNX's files, where small elements are packed.
int64_t element_bits(DataType type);

// "float32", "int64", "bool", ...
std::string_view name(DataType type);

// The inverse of name(); nullopt if `text` is not the name of a type.
std::optional<DataType> data_type_from_name(std::string_view text);

bool is_floating(DataType type);  // the two 16-bit floats, float32, float64
bool is_integer(DataType type);   // signed and unsigned of 8 to 64 bits, without bool
bool is_signed_integer(DataType type);
bool is_small(DataType type);  // floats of 8 and 4 bits, integers of 4 and 2 bits
bool is_small_float(DataType type);

}  // namespace tessera
