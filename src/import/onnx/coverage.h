// Which operators this build loads: those of the table of ops, and those that import converts.
#pragma once

#include <string>
#include <vector>

#include "ops/registry.h"

namespace tessera {

struct OperatorCoverage {
  std::string domain;  // "" is ONNX's own
  std::string name;
  std::vector<int> versions;  // ascending; empty if this build lacks the operator
  int last_version = 0;       // the last operator set that has it; 0: it is still in use
  // Whether it was an experiment that ONNX has removed from its history.
  bool is_experiment = false;
  std::vector<ops::TypeVariable> types = {};
};

// The operators of `registry`, the experiments that import converts, and the other operators that
// ONNX has, by domain and name.
std::vector<OperatorCoverage> operator_coverage(const ops::Registry& registry);

// "floats; T1: int32, int64": the elements of each type variable, of which the first one needs no
// name. Groups of types have a name: "floats" are the four types of ops::kFloatTypes.
std::string element_types_text(const std::vector<ops::TypeVariable>& types);

// "numbers, bool", "float32".
std::string type_set_text(const ops::TypeSet& types);

// The types of `types`, in the order of DataType.
std::vector<DataType> members(const ops::TypeSet& types);

}  // namespace tessera
