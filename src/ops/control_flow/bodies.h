// Shared by ops with nested graphs and ops on lists.
#pragma once

#include <string>

#include "ops/control_flow/join_types.h"
#include "ops/op.h"

namespace tessera::ops {

const Graph& body_of(const Node& node, size_t body);
const Type& body_output_type(const Node& node, size_t body, size_t output);

// Throws InvalidModel at a nested graph.
[[noreturn]] void fail_body(const Node& node, size_t body, const std::string& message);
// Throws InvalidModel at the first nested graph unless the numbers are equal; `what` is counted.
void check_body_count(const Node& node, const std::string& what, size_t expected, size_t found);

// The dimensions of an output that are known only in the run.
UnknownDim unknown_dims(const InferContext& context, size_t output);
// Sets the type of an output. Ignores indices beyond the node's outputs and omitted outputs.
void set_output_type(InferContext& context, size_t output, Type type);

// fail_input()s if it is known to be no tensor of one element: a condition, a position, a number of
// iterations.
void check_single(const InferContext& context, size_t index);

// The element of an input that has one; fail()s if it has another number: sizes may be known only
// in the run.
const Tensor& single_input(const ValueCall& call, size_t index);
// Whether a condition holds; fail()s if it is not one bool.
bool is_true(const ValueCall& call, const Tensor& condition);

// The output of a loop that collects elements of this type, after no iteration. Dimensions of the
// type that are unknown become 0.
Tensor no_elements(const Type& element);

}  // namespace tessera::ops
