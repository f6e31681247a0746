// Nodes of operator sets before 6, and of ONNX's first experiments: the table of ops states
// operator set 6 and later, so import converts them to the meaning that an op had in operator set
// 6, or in that of the model if it is newer. first_versions.cc and experiments.cc have the rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "import/onnx/upgrade/insertions.h"
#include "ops/op.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

class Conversion;

// A definition of an op that the table of ops does not have.
struct OldOp {
  std::string_view name;
  int version = 1;
  int end = 6;  // the first operator set in which it does not hold
  // The op that it becomes. The row holds only if the table has that op.
  std::string_view successor;
  // Its inputs, outputs and attributes. `successor` is never null.
  ops::Op (*define)(const OldOp& old, const ops::Op& successor);
  // Makes a node with this definition, which has been checked, a node of a newer one.
  void (*convert)(Conversion& conversion);
  // Whether it was an experiment of operator sets 1 to 9, which ONNX has removed from its history.
  bool is_experiment = false;
};

std::span<const OldOp> first_versions();
std::span<const OldOp> experiments();

// The definition of an op of ONNX's own domain in operator set `opset`; nullptr if there is none,
// or if the table of ops has the op in that operator set.
const OldOp* find_old_op(const ops::Registry& registry, const std::string& domain,
                         const std::string& name, int64_t opset);

// Its schema, for ops::complete().
ops::Op definition_of(const OldOp& old, const ops::Registry& registry);

// `op` as it is in `version`, with other attributes in addition, as the schema of `old`.
ops::Op definition_like(const OldOp& old, const ops::Op& op, int version,
                        const std::vector<ops::AttributeSchema>& additional);

// The schemas of attributes without a default.
ops::AttributeSchema optional_attribute(const char* name, AttributeKind kind);
ops::AttributeSchema required_attribute(const char* name, AttributeKind kind);

// Converts a node that is complete by the definition of `old`. `opset` is that of the model. Throws
// Unsupported if no newer version has its meaning, InvalidModel if it has none.
void upgrade(const OldOp& old, Node& node, int64_t opset, Insertions& insertions);

// A node that is being converted.
class Conversion {
 public:
  // `node` and `insertions` must outlive this object. `opset` is at least 6.
  Conversion(Node& node, int opset, Insertions& insertions);

  Node& node() { return node_; }
  Insertions& insertions() { return insertions_; }
  // The operator set of the nodes that it becomes, except those that need a newer one.
  int opset() const { return opset_; }

  // The op of the node becomes `op`; `first_opset` is set if only a newer operator set has what it
  // needs.
  void become(const std::string& op, int first_opset = 1);

  // Adds a node or a constant in front. `suffix` says in its name what it is.
  ValueId add_node(const std::string& suffix, const std::string& op, std::vector<ValueId> inputs,
                   Attributes attributes, int first_opset = 1);
  ValueId add_constant(const std::string& suffix, Tensor elements);

  // The elements of a constant input as whole numbers. fail()s if it is none.
  std::vector<int64_t> constant_integers(size_t input);

  [[noreturn]] void fail(const std::string& message) const;              // InvalidModel
  [[noreturn]] void fail_unsupported(const std::string& message) const;  // Unsupported

 private:
  void set_op(Node& node, const std::string& op, int first_opset) const;

  Node& node_;
  int opset_;
  Insertions& insertions_;
  std::string location_;  // of the old node
  std::string definition_;
};

}  // namespace tessera::onnx_import
