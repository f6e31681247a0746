#include "backend/contract/attribute_view.h"

#include <functional>
#include <utility>
#include <variant>

namespace tessera {
namespace {

int32_t count_of(const auto& elements) { return static_cast<int32_t>(elements.size()); }

tessera_buffer buffer_of(const Tensor& tensor) {
  tessera_buffer buffer = {};
  // The contract tells plug-ins to read attributes only.
  buffer.data = const_cast<void*>(tensor.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  buffer.bytes = tensor.bytes();
  // Only values tell plug-ins of small types, which older ones do not know.
  const bool is_shown = !is_small(tensor.type());
  buffer.data_type = is_shown ? static_cast<int32_t>(tensor.type()) : int32_t{TESSERA_UNDEFINED};
  buffer.rank = static_cast<int32_t>(tensor.rank());
  buffer.dims = tensor.dims().data();
  return buffer;
}

// Fills `abi`. Returns false if the contract has no such kind of attribute.
struct Fill {
  tessera_attribute& abi;
  std::vector<const char*>& strings;

  bool operator()(int64_t value) const {
    abi.kind = TESSERA_ATTRIBUTE_INT;
    abi.int_value = value;
    return true;
  }
  bool operator()(float value) const {
    abi.kind = TESSERA_ATTRIBUTE_FLOAT;
    abi.float_value = value;
    return true;
  }
  bool operator()(const std::string& value) const {
    abi.kind = TESSERA_ATTRIBUTE_STRING;
    abi.string_value = value.c_str();
    return true;
  }
  bool operator()(const std::vector<int64_t>& values) const {
    abi.kind = TESSERA_ATTRIBUTE_INTS;
    abi.ints = values.data();
    abi.count = count_of(values);
    return true;
  }
  bool operator()(const std::vector<float>& values) const {
    abi.kind = TESSERA_ATTRIBUTE_FLOATS;
    abi.floats = values.data();
    abi.count = count_of(values);
    return true;
  }
  bool operator()(const std::vector<std::string>& values) const {
    abi.kind = TESSERA_ATTRIBUTE_STRINGS;
    for (const std::string& value : values) strings.push_back(value.c_str());
    abi.strings = strings.data();
    abi.count = count_of(values);
    return true;
  }
  bool operator()(const Tensor& value) const {
    abi.kind = TESSERA_ATTRIBUTE_TENSOR;
    abi.tensor = buffer_of(value);
    return true;
  }
  bool operator()(const std::vector<Tensor>& /*values*/) const { return false; }
  bool operator()(const Type& /*value*/) const { return false; }
};

}  // namespace

AttributeViews::AttributeViews(const Attributes& attributes) : attributes_(attributes) {
  for (const auto& [name, attribute] : attributes_.all()) {
    View view;
    view.abi.struct_size = sizeof(view.abi);
    // Moving a vector keeps its elements in place, so `abi.strings` stays valid after emplace().
    if (std::visit(Fill{view.abi, view.strings}, attribute)) views_.emplace(name, std::move(view));
  }
}

const tessera_attribute* AttributeViews::find(const char* name) const {
  if (name == nullptr) return nullptr;
  const auto found = views_.find(std::string_view(name));
  return found == views_.end() ? nullptr : &found->second.abi;
}

}  // namespace tessera
