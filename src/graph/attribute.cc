#include "graph/attribute.h"

#include <array>

#include "base/errors/check.h"

namespace tessera {
namespace {

template <class T>
const T* find(const Attributes::Values& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : std::get_if<T>(&found->second);
}

template <class T>
const T& get(const Attributes::Values& values, std::string_view name) {
  const T* value = find<T>(values, name);
  if (value == nullptr) {
    fail_check(__FILE__, __LINE__, std::string(name).c_str(),
               "the schema gives this attribute a value");
  }
  return *value;
}

}  // namespace

AttributeKind kind_of(const Attribute& attribute) {
  return static_cast<AttributeKind>(attribute.index());
}

std::string_view name(AttributeKind kind) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "int", "float", "string", "ints", "floats", "strings", "tensor", "tensors", "type"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t Attributes::get_int(std::string_view name) const { return get<int64_t>(values_, name); }

float Attributes::get_float(std::string_view name) const { return get<float>(values_, name); }

const std::string& Attributes::get_string(std::string_view name) const {
  return get<std::string>(values_, name);
}

const std::vector<int64_t>& Attributes::get_ints(std::string_view name) const {
  return get<std::vector<int64_t>>(values_, name);
}

const int64_t* Attributes::find_int(std::string_view name) const {
  return find<int64_t>(values_, name);
}

const float* Attributes::find_float(std::string_view name) const {
  return find<float>(values_, name);
}

const std::string* Attributes::find_string(std::string_view name) const {
  return find<std::string>(values_, name);
}

const std::vector<int64_t>* Attributes::find_ints(std::string_view name) const {
  return find<std::vector<int64_t>>(values_, name);
}

const std::vector<float>* Attributes::find_floats(std::string_view name) const {
  return find<std::vector<float>>(values_, name);
}

const std::vector<std::string>* Attributes::find_strings(std::string_view name) const {
  return find<std::vector<std::string>>(values_, name);
}

const Tensor* Attributes::find_tensor(std::string_view name) const {
  return find<Tensor>(values_, name);
}

const Type* Attributes::find_type(std::string_view name) const { return find<Type>(values_, name); }

}  // namespace tessera
