// The static type of a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/dim.h"
#include "tessera/data_type.h"

namespace tessera {

// A tensor, a sequence, an optional or a map.
struct Type {
  enum class Kind : uint8_t { Unknown, Tensor, Sequence, Optional, Map };

  Kind kind = Kind::Unknown;
  DataType element = DataType::Undefined;  // of a tensor; of a map, the type of its keys
  std::optional<Shape> shape;              // of a tensor; nullopt if even the rank is unknown
  std::vector<Type> contents;              // of a sequence, an optional or a map: exactly one

  static Type tensor(DataType element, std::optional<Shape> shape = std::nullopt);
  static Type sequence(Type content);
  static Type optional(Type content);
  static Type map(DataType key, Type content);

  bool is_tensor() const { return kind == Kind::Tensor; }
  // A tensor whose element type and every dimension are known.
  bool is_known_tensor() const;

  bool operator==(const Type& other) const = default;
};

// "float32 1x3x224x224", "float32 ?" (rank unknown), "sequence(float32 ?)", "unknown".
std::string text(const Type& type);

// Bytes of a dense tensor of this type; nullopt unless is_known_tensor(). Throws on overflow.
std::optional<int64_t> type_bytes(const Type& type);

}  // namespace tessera
