// Numbers that follow from sizes, beyond what type rules express: exporters compute the size of a
// resized image with floating-point numbers.
#pragma once

#include <optional>
#include <span>

#include "graph/graph.h"
#include "ops/op.h"

namespace tessera {

// Tensors of at most so many elements are computed: lists with an element for each axis, and a few
// more. Longer ones, as positions in a text, are work for kernels.
inline constexpr int64_t kMostNumbers = 16;

// Whether Value::numbers may have the elements of a value of this type.
bool may_be_numbers(const Type& type);

// The elements that inference tracked (Value::elements), as a tensor; nullopt unless all are known.
std::optional<Tensor> inferred_tensor(const Value& value);

// Computes `node` by its reference kernel if the elements of all `inputs` are known and few, and
// notes the elements of `outputs`, as Value::elements or Value::numbers. Pointers are null for
// inputs and outputs that are omitted. Leaves unknown what the kernel refuses.
void follow_numbers(const ops::Op& op, const Node& node, std::span<const Value* const> inputs,
                    std::span<Value* const> outputs);

}  // namespace tessera
