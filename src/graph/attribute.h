// The attributes of a node: named constants that parametrise the operator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/type.h"
#include "tessera/tensor.h"

namespace tessera {

// Nested graphs are in Node::bodies, not here, so that code that walks graphs finds them.
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

// The attributes by name, in alphabetical order. Import checks every attribute against the op's
// schema and adds defaults, so later code need not care whether the model states a default.
class Attributes {
 public:
  bool has(std::string_view name) const { return values_.contains(name); }
  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }

  // The value of an attribute that the schema requires or gives a default. If it is missing or of
  // another kind than in the schema, that is a bug.
  int64_t get_int(std::string_view name) const;
  float get_float(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
  const std::vector<int64_t>& get_ints(std::string_view name) const;

  // The value of an attribute without a default; nullptr if the model does not give it.
  const int64_t* find_int(std::string_view name) const;
  const float* find_float(std::string_view name) const;
  const std::string* find_string(std::string_view name) const;
  const std::vector<int64_t>* find_ints(std::string_view name) const;
  const std::vector<float>* find_floats(std::string_view name) const;
  const std::vector<std::string>* find_strings(std::string_view name) const;
  const Tensor* find_tensor(std::string_view name) const;
  const Type* find_type(std::string_view name) const;

  // std::less<> allows lookup by string_view, so that kernels can look up attributes without
  // allocating.
  using Values = std::map<std::string, Attribute, std::less<>>;
  const Values& all() const { return values_; }

 private:
  Values values_;
};

}  // namespace tessera
