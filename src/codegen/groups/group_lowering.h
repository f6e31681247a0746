// Appends the instructions of the nodes of a group, whose space is known, and says how its points
// read tensors and write results.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/expression/expression_builder.h"
#include "codegen/groups/group_space.h"
#include "tessera/backend_fusion.h"

namespace tessera::codegen {

// How values of some dimensions lie on the points of a group.
struct Place {
  PartedSpace parted;
  int64_t parts = 1;
  std::vector<AxisRun> runs;  // by dimension
};

// Where a tensor has the elements of a place: `strides` by dimension, 0 along those in which it is
// broadcast.
struct TensorElements {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

// A part of a value that is written.
struct PartResult {
  ValueId value;
  plugin::FusedAccess access;  // without its port
  InstructionId instruction = -1;
};

class GroupLowering {
 public:
  // Both must outlive it.
  GroupLowering(const FusionGraph& graph, const GroupSpace& space) : graph_(graph), space_(space) {}

  // Appends a node, after the nodes of the group that it reads. False if an input cannot be read at
  // the points.
  bool lower(NodeId id);
  // The parts of a value of the group.
  std::vector<PartResult> results(ValueId value) const;

  const ExpressionBuilder& builder() const { return builder_; }
  // The tensor and the access of each operand, without ports.
  const std::vector<std::pair<ValueId, plugin::FusedAccess>>& operands() const { return operands_; }

 private:
  using Parts = std::vector<InstructionId>;

  bool lower_computation(NodeId id);
  bool lower_slice(NodeId id);
  bool lower_concat(NodeId id);
  // -1 for an input that is not read element by element.
  std::optional<InstructionId> argument_of(NodeId id, size_t index,
                                           const std::vector<int64_t>& dims, const Place& place,
                                           int64_t part);
  // Appends an operand for each part of a value that lies on the points as one of `dims` does.
  bool read_parts(ValueId value, const std::vector<int64_t>& dims, const TensorElements& elements,
                  Parts& parts);
  InstructionId read(ValueId value, const Place& place, const TensorElements& elements,
                     int64_t part, bool is_whole);
  // A constant of one element is part of the expression.
  std::optional<InstructionId> read_constant(ValueId value);
  InstructionId add_operand(ValueId value, plugin::FusedAccess access);

  const FusionGraph& graph_;
  const GroupSpace& space_;
  ExpressionBuilder builder_;
  std::map<ValueId, Parts> instructions_of_;
  std::vector<std::pair<ValueId, plugin::FusedAccess>> operands_;
};

}  // namespace tessera::codegen
