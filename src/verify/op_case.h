// A small graph as a test case for plug-ins, written as text:
//
//   MatMul(3x5, #5x7)                                 an op and the types of its inputs
//   Conv(1x3x9x7, #4x3x3x3, #4) pads=1,1,1,1; Relu(@)  a node that reads the one before
//
//   3x5            float32 of these sizes, fed at run time; "s" is a scalar
//   int64:3x5      another element type
//   #5x7           a constant; +5x7: positive numbers only
//   {2,-1}         a constant of rank 1 with these int64 elements; {0.5}: float32; s{6.0}: a scalar
//   _              omitted
//   @, @0          the first output of the previous node, of node 0
//   =0             input 0 of the graph again
//   LSTM/3(...)    with three outputs instead of those that the schema requires
//   domain::Op(...)
//
// The kinds of attributes are those of the op's schema.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/op.h"
#include "ops/registry.h"

namespace tessera::verification {

struct OpCase {
  std::string text;
  Graph graph;                    // types inferred; constants have elements
  std::vector<Tensor> inputs;     // one per graph input
  std::vector<ValueId> literals;  // constants whose elements are in the text
  std::string op;                 // of all nodes, joined by '+'
};

// "Conv+Relu" for "Conv(1x3x9x7, #4x3x3x3); Relu(@)".
std::string ops_of(const std::string& text);

// Parses `text` and draws elements from `seed`. Throws InvalidArgument if the text is malformed,
// and the errors of the ops' rules.
OpCase read_op_case(const std::string& text, const ops::Registry& registry, uint64_t seed);

// The test cases for plug-ins (case_table.cc), in this notation: ONNX's ops with odd shapes and
// attributes, and groups that are often fused.
std::span<const char* const> case_table();

// Cases for an op that is not in the table: all inputs have the same shape, for several shapes.
// Whether the op's type rule accepts a case shows when it is read.
std::vector<std::string> cases_for(const ops::Op& op);

}  // namespace tessera::verification
