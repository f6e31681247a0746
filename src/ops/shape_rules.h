// Shared by the shape rules of several ops: fresh symbols, lists of axes, products of dimensions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// The maximum number of dimensions that a tensor may list; a larger number means a corrupt file.
inline constexpr int64_t kMaxDimensions = 1024;

// The dimension `axis` of output `output` if it is known only at run time. The symbol contains the
// node's name ("?reshape_3.0.1"), which is unique in its graph, so it equals no other symbol. The
// rule gives the number when it is called with the actual tensors.
Dim unknown_dim(const InferContext& context, size_t output, size_t axis);
// Unknown dimensions for a whole output; nullopt (unknown rank) if `rank` exceeds kMaxDimensions.
std::optional<Shape> unknown_shape(const InferContext& context, size_t output, int64_t rank);

// The known elements of an integer input that is a list (rank 1 or a scalar); nullopt if they are
// unknown. Unlike InferContext::known_integers(), it also reads lists too long for shape
// arithmetic. fail_input()s on rank 2 and more.
std::optional<std::vector<int64_t>> integer_list(const InferContext& context, size_t index);
// Same as integer_list(), but elements may be symbols.
std::optional<std::vector<Dim>> dim_list(const InferContext& context, size_t index);
// The number of elements of such a list; nullopt if it is unknown.
std::optional<int64_t> list_length(const InferContext& context, size_t index);

// `axes` normalised to [0, rank), in their order. fail()s if one is outside of [-rank, rank) or
// occurs twice.
std::vector<int64_t> normalized_axes(const InferContext& context, std::span<const int64_t> axes,
                                     int64_t rank);

// The product in a canonical form that does not depend on the order of `dims`: 0 if one of them is
// 0, else the symbols by name, then the number.
Dim product(std::vector<Dim> dims);

// The number of elements if the shape is known and the number is at most kMaxShapeElements; else
// nullopt, and the rule does not track elements.
std::optional<int64_t> small_count(const std::optional<Shape>& shape);

// fail_input()s unless the input has rank 1.
void check_one_dimension(const InferContext& context, size_t index);

// The elements of input `index` if their number agrees with its shape; nullptr otherwise.
const std::vector<Dim>* propagated_elements(const InferContext& context, size_t index);

}  // namespace tessera::ops
