// What the shape rules of several ops share: fresh symbols, lists of axes, products of dimensions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// A shape that a tensor spells out may have at most this many dimensions: more is a broken file.
inline constexpr int64_t kMostDimensions = 1024;

// The dimension `axis` of output `output` where only running can tell it. The symbol is made of the
// node's name ("?reshape_3.0.1"), unique in its graph, so that it equals nothing else; the rule
// gives the number once it is called with the actual tensors.
Dim unknown_dim(const InferContext& context, size_t output, size_t axis);
// Such dimensions for a whole output; nullopt (unknown rank) where `rank` exceeds kMostDimensions.
std::optional<Shape> unknown_shape(const InferContext& context, size_t output, int64_t rank);

// The known elements of an integer input that is a list (rank 1, or a scalar); nullopt while they
// are unknown. Unlike InferContext::known_integers() it also reads lists that are longer than shape
// arithmetic follows. fail_input()s on rank 2 and more.
std::optional<std::vector<int64_t>> integer_list(const InferContext& context, size_t index);
// The same where elements may be symbols.
std::optional<std::vector<Dim>> dim_list(const InferContext& context, size_t index);
// How many elements such a list has; nullopt while that is unknown.
std::optional<int64_t> list_length(const InferContext& context, size_t index);

// `axes` counted from the front, in their order. fail()s on one outside [-rank, rank) and on one
// named twice.
std::vector<int64_t> normalized_axes(const InferContext& context, std::span<const int64_t> axes,
                                     int64_t rank);

// The product in one canonical form, whatever the order of `dims`: 0 where one of them is 0, else
// the symbols by name, then the number.
Dim product(std::vector<Dim> dims);

// The number of elements where the shape is known, at most kMostShapeElements; else nullopt: the
// rule then does not follow elements.
std::optional<int64_t> small_count(const std::optional<Shape>& shape);

// fail_input()s where the input has another rank than 1.
void check_one_dimension(const InferContext& context, size_t index);

// The elements of input `index` where they agree with its shape; nullptr otherwise.
const std::vector<Dim>* followed_elements(const InferContext& context, size_t index);

}  // namespace tessera::ops
