// The types that a graph of the file declares for its values.
#pragma once

#include <string>
#include <unordered_map>

#include "base/log.h"
#include "graph/type.h"
#include "import/onnx/functions.h"
#include "import/onnx/scope.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// A graph of the file and where it stands.
struct GraphSite {
  const onnx::GraphProto& proto;
  const Frame& frame;
  Scope* outer = nullptr;  // nullptr: the model's own graph
  std::string where;       // of errors inside: "node 'if1' (If), then_branch, " or ""
  std::string symbols;  // before the names of unknown dimensions, so that no two graphs share them
  int depth = 1;        // graphs around this one, itself included
};

class DeclaredTypes {
 public:
  // Both must outlive this.
  DeclaredTypes(const GraphSite& site, const Log& log);

  // Of a graph input. Only the inputs of nested graphs may leave it open; else throws InvalidModel.
  Type input_type(const onnx::ValueInfoProto& input, const std::string& where) const;

  // Of a value that a node makes; unknown where the file does not say.
  Type inner_type(const std::string& name) const;

  // Holds the type of an initializer against what is declared: another element type throws
  // InvalidModel, another shape is a warning.
  void check_constant(const std::string& name, const Type& type) const;

 private:
  Type type_of_value(const onnx::ValueInfoProto& proto, const std::string& name,
                     const std::string& where) const;

  const GraphSite& site_;
  const Log& log_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> inner_;
};

// Holds the type of an initializer against that of the graph input of its name. Throws InvalidModel
// naming both.
void check_input_constant(const Type& input, const Type& constant, const std::string& where);

}  // namespace tessera::onnx_import
