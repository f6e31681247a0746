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

// Among the attributes of a node, import keeps under this name the type that the model declares for
// an output of a nested graph, if it tells a size. Types in a bound graph follow from its inputs
// instead, but a loop without an iteration has only this. No attribute of ONNX has such a name.
std::string declared_type_name(const std::string& body, size_t output);
bool is_declared_type_name(const std::string& attribute);
// The type with the sizes that `declared` (null: nothing) adds to it.
Type with_declared_sizes(Type type, const Type* declared);

// Whether the condition that the nested graph of a Loop gives is true in every iteration if it is
// true at the beginning: a constant, or the condition that the graph gets and gives on.
bool goes_on_always(const Graph& body);

// What a loop collects of an output of its nested graph in no iteration. Dimensions that are
// unknown are those that the model declares, else 0.
Tensor no_elements(const Node& node, size_t output);

}  // namespace tessera::ops
