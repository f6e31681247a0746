// The attributes of a node: named constants that are part of the operator, not of its data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/type.h"
#include "tessera/tensor.h"

namespace tessera {

// Nested graphs are not attributes but Node::bodies, so that code which walks graphs meets them.
using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, Tensor, std::vector<Tensor>, Type>;

// The order of the alternatives of Attribute.
enum class AttributeKind : uint8_t {
  Int,
  Float,
  String,
  Ints,
  Floats,
  Strings,
  Tensor,
  Tensors,
  Type
};

AttributeKind kind_of(const Attribute& attribute);
std::string_view name(AttributeKind kind);  // "int", "floats", ...

// By name, in alphabetical order. Import checks every attribute against the op's schema and fills
// in defaults, so code after it reads without asking whether the model spelled a default out.
class Attributes {
 public:
  bool has(const std::string& name) const { return values_.contains(name); }
  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }

  // The value of an attribute that the schema requires or gives a default; its absence, or another
  // kind than the schema's, is a bug.
  int64_t get_int(const std::string& name) const;
  float get_float(const std::string& name) const;
  const std::string& get_string(const std::string& name) const;
  const std::vector<int64_t>& get_ints(const std::string& name) const;

  // The value of an attribute without a default; nullptr where the model does not give it.
  const int64_t* find_int(const std::string& name) const;
  const float* find_float(const std::string& name) const;
  const std::string* find_string(const std::string& name) const;
  const std::vector<int64_t>* find_ints(const std::string& name) const;
  const std::vector<float>* find_floats(const std::string& name) const;
  const std::vector<std::string>* find_strings(const std::string& name) const;
  const Tensor* find_tensor(const std::string& name) const;

  const std::map<std::string, Attribute>& all() const { return values_; }

 private:
  std::map<std::string, Attribute> values_;
};

}  // namespace tessera
