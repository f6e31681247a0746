// The attributes of a node in the form that plug-ins read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Owns what its views point to, so it may outlive the attributes that it was made from. Movable:
// moving does not invalidate the views.
class AttributeViews {
 public:
  explicit AttributeViews(const Attributes& attributes);
  AttributeViews(AttributeViews&&) = default;
  AttributeViews& operator=(AttributeViews&&) = default;
  AttributeViews(const AttributeViews&) = delete;
  AttributeViews& operator=(const AttributeViews&) = delete;
  ~AttributeViews() = default;

  // nullptr if there is no such attribute, or its kind is not part of the contract (a list of
  // tensors, a type).
  const tessera_attribute* find(const char* name) const;

 private:
  struct View {
    tessera_attribute abi = {};
    std::vector<const char*> strings;
  };

  // Moving either keeps its elements at their addresses, to which `views_` points.
  Attributes attributes_;
  std::map<std::string, View, std::less<>> views_;
};

}  // namespace tessera
