// The attributes of a node as plug-ins read them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Owns what its views point to, so it may outlive the attributes that it was made from. May be
// moved: the views stay where they are.
class AttributeViews {
 public:
  explicit AttributeViews(const Attributes& attributes);
  AttributeViews(AttributeViews&&) = default;
  AttributeViews& operator=(AttributeViews&&) = default;
  AttributeViews(const AttributeViews&) = delete;
  AttributeViews& operator=(const AttributeViews&) = delete;
  ~AttributeViews() = default;

  // nullptr where there is no such attribute, or one of a kind that plug-ins do not know (a list of
  // tensors, a type).
  const tessera_attribute* find(const char* name) const;

 private:
  struct View {
    tessera_attribute face = {};
    std::vector<const char*> strings;
  };

  // Both keep their elements in place when they are moved, which the pointers in `views_` need.
  Attributes attributes_;
  std::map<std::string, View, std::less<>> views_;
};

}  // namespace tessera
