// Arithmetic on the elements of small integer tensors (InferInput::elements), which rules carry
// along so that shapes which a model computes are known before it runs.
//
// Element functions give nullopt where the result cannot be told: where it would exceed the element
// type (kernels wrap around, dimensions do not) or divides by zero. Symbols stand for integers; one
// whose text has no minus sign stands for a dimension, which is not negative.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// Elements are carried in int32, int64 and bool tensors (0 and 1).
bool carries_elements(DataType type);

// Whether `dim` can be told to be at least 0.
bool is_non_negative(const Dim& dim);

using ElementFunction = std::function<std::optional<Dim>(const std::vector<Dim>& arguments)>;

std::optional<Dim> add_elements(const Dim& left, const Dim& right);
std::optional<Dim> subtract_elements(const Dim& left, const Dim& right);
std::optional<Dim> multiply_elements(const Dim& left, const Dim& right);
// Truncates, as Div does.
std::optional<Dim> divide_elements(const Dim& left, const Dim& right);
// Whether they are equal: 0, 1, or the symbol of the question.
Dim equal_elements(const Dim& left, const Dim& right);
Dim smaller_element(const Dim& left, const Dim& right);
Dim larger_element(const Dim& left, const Dim& right);

// Sets the elements of output 0, whose type and shape are set, to `function` of the elements of the
// first `input_count` inputs, broadcast. Does nothing unless all are known, the output's type
// carries elements, it has at most kMostShapeElements of them, and every result fits the type.
void set_elementwise_elements(InferContext& context, const ElementFunction& function,
                              size_t input_count);
inline void set_elementwise_elements(InferContext& context, const ElementFunction& function) {
  set_elementwise_elements(context, function, context.input_count());
}

// The elements of an input: as carried, or out of a small constant bool tensor.
std::optional<std::vector<Dim>> elements_of(const InferInput& input);

}  // namespace tessera::ops
