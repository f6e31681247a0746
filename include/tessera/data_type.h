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
  Map,       // keys and values (Tensor::map()); no tensor has such elements
};

// Bytes of one element; 0 for Undefined, String, Sequence and Map, which have no fixed size.
int64_t element_bytes(DataType type);

// "float32", "int64", "bool", ...
std::string_view name(DataType type);

// The inverse of name(); nullopt if `text` is not the name of a type.
std::optional<DataType> data_type_from_name(std::string_view text);

bool is_floating(DataType type);  // the two 16-bit floats, float32, float64
bool is_integer(DataType type);   // signed and unsigned, without bool
bool is_signed_integer(DataType type);

}  // namespace tessera
