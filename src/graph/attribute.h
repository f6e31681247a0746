// The attributes of a node: named constants that are part of the operator, not of its data.
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
  bool has(std::string_view name) const { return values_.contains(name); }
  void set(const std::string& name, Attribute value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }

  // The value of an attribute that the schema requires or gives a default; its absence, or another
  // kind than the schema's, is a bug.
  int64_t get_int(std::string_view name) const;
  float get_float(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
  const std::vector<int64_t>& get_ints(std::string_view name) const;

  // The value of an attribute without a default; nullptr where the model does not give it.
  const int64_t* find_int(std::string_view name) const;
  const float* find_float(std::string_view name) const;
  const std::string* find_string(std::string_view name) const;
  const std::vector<int64_t>* find_ints(std::string_view name) const;
  const std::vector<float>* find_floats(std::string_view name) const;
  const std::vector<std::string>* find_strings(std::string_view name) const;
  const Tensor* find_tensor(std::string_view name) const;

  // Looked up by a view of the name, so that kernels can ask while running without allocating.
  using Values = std::map<std::string, Attribute, std::less<>>;
  const Values& all() const { return values_; }

 private:
  Values values_;
};

}  // namespace tessera
