// The names of one graph under construction, linked to the scopes of the enclosing graphs.
#pragma once

#include <string>
#include <unordered_map>

#include "graph/graph.h"

namespace tessera::onnx_import {

class Scope {
 public:
  // `graph` is the one under construction; `outer` is the enclosing scope or nullptr. Both must
  // outlive this object.
  Scope(Graph& graph, Scope* outer) : graph_(graph), outer_(outer) {}

  // Adds the output of a node; `maker` describes its definition in errors. Throws InvalidModel if a
  // value of that name exists here or is visible from outside.
  ValueId make(Value value, const std::string& maker);
  // Adds an input or a constant of this graph, which hides a value outside that has the same name:
  // models do that, and onnxruntime accepts it, but not from a node. Throws InvalidModel if a value
  // of that name exists here.
  ValueId make_own(Value value, const std::string& maker);

  // Whether this graph itself has made or captured a value of that name so far.
  bool has(const std::string& name) const { return entries_.contains(name); }

  // The value called `name`, captured from outside if necessary; none() if there is none.
  ValueId find(const std::string& name);

 private:
  struct Entry {
    ValueId id;
    std::string maker;
  };

  // The maker of a visible value; nullptr if there is none.
  const std::string* find_maker(const std::string& name) const;

  Graph& graph_;
  Scope* outer_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace tessera::onnx_import
