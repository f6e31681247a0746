#include "import/onnx/names/scope.h"

#include <utility>

#include "tessera/error.h"

namespace tessera::onnx_import {

const std::string* Scope::find_maker(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->entries_.find(name);
    if (found != scope->entries_.end()) return &found->second.maker;
  }
  return nullptr;
}

ValueId Scope::make(Value value, const std::string& maker) {
  const std::string* other = entries_.contains(value.name) ? nullptr : find_maker(value.name);
  if (other != nullptr) {
    throw Error(ErrorKind::InvalidModel, "value '" + value.name + "'",
                "expected a unique name, found the same name in a graph around it: made by " +
                    *other + " and by " + maker);
  }
  return make_own(std::move(value), maker);
}

ValueId Scope::make_own(Value value, const std::string& maker) {
  const auto known = entries_.find(value.name);
  if (known != entries_.end()) {
    throw Error(ErrorKind::InvalidModel, "value '" + value.name + "'",
                "expected a unique name, found that it is made twice: by " + known->second.maker +
                    " and by " + maker);
  }
  std::string name = value.name;
  const ValueId id = add_value(graph_, std::move(value));
  entries_.emplace(std::move(name), Entry{id, maker});
  return id;
}

ValueId Scope::find(const std::string& name) {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second.id;
  if (outer_ == nullptr) return {};
  const ValueId outer = outer_->find(name);
  if (outer.is_none()) return {};
  Value value;
  value.name = name;
  value.type = outer_->graph_[outer].type;
  const ValueId inner = add_value(graph_, std::move(value));
  graph_.captures.push_back({outer, inner});
  entries_.emplace(name, Entry{inner, "a graph around this one"});
  return inner;
}

}  // namespace tessera::onnx_import
