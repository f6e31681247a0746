// Arithmetic on the elements of small integer tensors (InferInput::elements). Rules track them, so
// that shapes which a model computes are known before it runs.
//
// Element functions return nullopt if the result is unknown: if it might exceed the element type
// (kernels wrap around, dimensions do not), or if it divides by zero. Symbols stand for integers. A
// symbol whose text has no minus sign stands for a dimension, which is not negative.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// Whether elements of this type are tracked: int32, int64 and bool (0 and 1).
bool propagates_elements(DataType type);

// Whether `dim` is known to be at least 0.
bool is_non_negative(const Dim& dim);

using ElementFunction = std::function<std::optional<Dim>(const std::vector<Dim>& arguments)>;

std::optional<Dim> add_elements(const Dim& left, const Dim& right);
std::optional<Dim> subtract_elements(const Dim& left, const Dim& right);
std::optional<Dim> multiply_elements(const Dim& left, const Dim& right);
// Truncating division, as in Div.
std::optional<Dim> divide_elements(const Dim& left, const Dim& right);
// As in Mod: with the sign of `right`, and with fmod = 1 that of `left`.
std::optional<Dim> modulo_elements(const Dim& left, const Dim& right);
std::optional<Dim> remainder_elements(const Dim& left, const Dim& right);
// Whether both are equal: 0, 1, or the symbol of the comparison.
Dim equal_elements(const Dim& left, const Dim& right);
Dim smaller_element(const Dim& left, const Dim& right);
Dim larger_element(const Dim& left, const Dim& right);

// Sets the elements of output 0, whose type and shape are set, to `function` of the broadcast
// elements of the first `input_count` inputs. Does nothing unless all elements are known, the
// output's type is tracked, it has at most kMaxShapeElements elements, and every result fits the
// type.
void set_elementwise_elements(InferContext& context, const ElementFunction& function,
                              size_t input_count);
inline void set_elementwise_elements(InferContext& context, const ElementFunction& function) {
  set_elementwise_elements(context, function, context.input_count());
}

// The tracked elements of an input, or those of a small constant bool tensor.
std::optional<std::vector<Dim>> elements_of(const InferInput& input);

}  // namespace tessera::ops
