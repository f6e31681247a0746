// How nodes take part in fused groups: one table says for each op whether it computes element by
// element, reduces, or only changes dimensions, and how its node becomes instructions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expression/expression_builder.h"
#include "graph/graph.h"

namespace tessera::codegen {

enum class FusionKind : uint8_t {
  None,
  Elementwise,    // the result at a point depends on the inputs at this point
  Reduction,      // the result has one element for all points along the reduced axes
  Normalization,  // the same axes, but a result for each point: Softmax, LayerNormalization
  View,           // the same elements in the same order with other dimensions
  Slice,          // each output has some of the elements: Slice, Split
  Concat,         // the elements of all inputs, joined along one axis
};

// Which elements of one dimension an output of a Slice has: `count` of them, from `start` on.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;  // at least 1
  int64_t count = 1;

  auto operator<=>(const SliceRange&) const = default;
};

// The maximum number of parts of a value; a kernel computes all of them at each point.
inline constexpr int64_t kMaxParts = 16;

struct FusionRole {
  FusionKind kind = FusionKind::None;
  std::string refusal;  // of None: why; a sentence without a subject and a final stop
  // By input: the dimensions with which it broadcasts to the space of the node, padded with ones to
  // the rank of the space. A scalar space has one dimension of 1, so that they are empty only for
  // an input that is left out or not read element by element: a constant whose elements decide what
  // is computed (axes, a divisor), or a value of which only the type counts (the second input of
  // CastLike, the shape of Reshape). The space has the dimensions of output 0 (Elementwise,
  // Normalization, Slice, Concat) or of input 0 (Reduction, View). The inputs of a Slice or a
  // Concat have their own dimensions.
  std::vector<std::vector<int64_t>> input_dims;
  // The dimensions of the space if they are others than those above, with as many points: those of
  // GroupNormalization, which reduces over a part of the channels. Else empty.
  std::vector<int64_t> space_dims;
  // By axis of the space; of Reduction and Normalization. At least one axis of more than one
  // element is reduced. Else empty.
  std::vector<bool> reduced_axes;
  // Of Slice: by output and dimension of input 0.
  std::vector<std::vector<SliceRange>> slices;
  size_t concat_axis = 0;  // of Concat
};

// The role of a node. Except for Slice, only output 0 counts. None if a size is not known or 0, and
// if another output is present and read. An op that reduces one element to one in this node is
// Elementwise. Never throws for a model that was accepted.
FusionRole fusion_role(const Graph& graph, const Node& node);

// The instructions at one point for the inputs of a node.
struct NodeArguments {
  std::vector<InstructionId> inputs;  // by input; -1: left out, or not read element by element
  int64_t reduced_elements = 1;       // how many points a reduction covers
};

// Appends what `node` computes, for a role that computes something. Returns the instruction
// of output 0, which has the output's type. 16-bit floats are computed in float32 and rounded once.
// Computes what the op's reference kernel does, for all values, within the errors that the table
// states; integer arithmetic is exact.
InstructionId lower_node(const Graph& graph, const Node& node, const NodeArguments& arguments,
                         ExpressionBuilder& builder);

}  // namespace tessera::codegen
