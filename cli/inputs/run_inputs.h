// Provides the inputs of a run: tensors from files, and random tensors for the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::cli {

using NamedTensors = std::map<std::string, Tensor>;
using NamedShapes = std::map<std::string, std::vector<int64_t>>;

// Parses --shape arguments. Throws InvalidArgument if a name is not an input or occurs twice, or if
// a shape cannot be parsed or has a range of sizes (shape_ranges.h).
NamedShapes parse_shapes(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs);

// The sets of --shape arguments of which each is bound: as many as the input that is named most
// often has; an input that is named once has the same shape in all sets. Without arguments, one
// empty set. Throws InvalidArgument for any other number.
std::vector<std::vector<std::string>> shape_sets(const std::vector<std::string>& arguments);

// Reads the files of --input arguments. An input that is a list has one argument for each of its
// tensors, in their order; the file "[]" stands for an empty list. Throws InvalidArgument if a name
// is not an input, or occurs twice and is no list, a file contains no tensor, or its type or shape
// contradicts the model or `shapes`.
NamedTensors read_inputs(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs, const NamedShapes& shapes);

// `shapes`, plus the shapes of tensors that `shapes` does not name. Lists have none.
NamedShapes shapes_to_bind(const NamedShapes& shapes, const NamedTensors& tensors);

// Throws InvalidArgument if an input that the model reads, and that is no optional, has no tensor.
void check_all_given(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors);

using NamedFeeds = std::map<std::string, AnyTensor>;

// Converts the tensors to the layouts of the bound `inputs`: sparse inputs are stored without
// zeros, and those in memory of a device of `backends` are copied there.
NamedFeeds feeds_of(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors,
                    const Backends& backends);

// Converts outputs to dense tensors in the host's memory, to print, compare and write them.
std::vector<Tensor> dense_of(std::vector<AnyTensor> tensors);

// Adds random tensors for the inputs that have none and are no optionals; `inputs` must be bound.
// An input that the model does not read gets no tensor if its shape is unknown. Sparse inputs get
// about half as many elements as their capacity.
void add_random(const std::vector<ValueDescription>& inputs, uint64_t seed, NamedTensors& tensors);

}  // namespace tessera::cli
