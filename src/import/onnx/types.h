// Converts ONNX's type descriptions to Tessera's: one by one, or those that a graph in the file
// declares for its values.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "base/errors/log.h"
#include "graph/dim_names.h"
#include "graph/type.h"
#include "import/onnx/names/functions.h"
#include "import/onnx/names/scope.h"
#include "import/onnx/wire/element_types.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// More than any kernel or library supports; hostile files declare millions of dimensions.
inline constexpr int kMaxDims = 64;
// More than models nest sequences, optionals and maps.
inline constexpr int kMaxNestedTypes = 16;

// The type that the file declares at `where` ("input 'x'"). A dimension without a value becomes a
// symbol that equals no other: the next one of its dim_param in `names` if that is a name, else
// "<value>[<axis>]", where `value` is the value's name in symbols. Throws Unsupported for
// unsupported element types, sparse and opaque types, and more than kMaxDims dimensions.
Type type_of(const onnx::TypeProto& proto, const std::string& where, const std::string& value,
             DimNames& names);

// A graph in the file and its context.
struct GraphSite {
  const onnx::GraphProto& proto;
  const Frame& frame;
  Scope* outer = nullptr;  // nullptr: the main graph
  std::string where;       // prefix of errors inside: "node 'if1' (If), then_branch, " or ""
  std::string symbols;     // prefix of unnamed dimensions, so that no two graphs share them
  int depth = 1;           // nesting depth, 1 for the main graph
};

// The types that a graph in the file declares for its values.
class DeclaredTypes {
 public:
  // All must outlive this object. `names` numbers the dimensions of the whole model.
  DeclaredTypes(const GraphSite& site, DimNames& names, const Log& log);

  // The type of a graph input. Throws InvalidModel if it is not declared, except in nested graphs.
  Type input_type(const onnx::ValueInfoProto& input, const std::string& where) const;

  // The type of a value that a node makes; unknown if the file does not declare it.
  Type inner_type(const std::string& name) const;

  // Checks the type of an initializer against its declaration: another element type throws
  // InvalidModel, another shape is a warning.
  void check_constant(const std::string& name, const Type& type) const;

 private:
  Type type_of_value(const onnx::ValueInfoProto& proto, const std::string& name,
                     const std::string& where) const;

  const GraphSite& site_;
  DimNames& names_;
  const Log& log_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> inner_;
};

// Checks the type of an initializer against that of the graph input of the same name. Throws
// InvalidModel naming both.
void check_input_constant(const Type& input, const Type& constant, const std::string& where);

}  // namespace tessera::onnx_import
