// The names of one graph while it is built, and the way to the graphs around it.
#pragma once

#include <string>
#include <unordered_map>

#include "graph/graph.h"

namespace tessera::onnx_import {

class Scope {
 public:
  // `graph` is the one being built; `outer` the scope around it, or nullptr. Both outlive this.
  Scope(Graph& graph, Scope* outer) : graph_(graph), outer_(outer) {}

  // Adds a value; `maker` is what makes it, for errors. Throws InvalidModel where a value of that
  // name is already made here or visible from outside.
  ValueId make(Value value, const std::string& maker);

  // Whether this graph itself has made or captured a value of that name so far.
  bool has(const std::string& name) const { return entries_.contains(name); }

  // The value called `name`, captured from outside where necessary; none() if nobody has made it.
  ValueId find(const std::string& name);

 private:
  struct Entry {
    ValueId id;
    std::string maker;
  };

  // The maker of a value that is visible here; nullptr if there is none.
  const std::string* find_maker(const std::string& name) const;

  Graph& graph_;
  Scope* outer_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace tessera::onnx_import
