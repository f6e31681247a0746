// Where the inputs of a run come from: files, and random numbers for the rest.
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

// The shapes of --shape arguments. Throws InvalidArgument: a name that is no input, one given
// twice, or what is no shape.
NamedShapes parse_shapes(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs);

// Reads the files of --input arguments. Throws InvalidArgument: a name that is no input, one given
// twice, a file that holds no tensor, or one whose type or shape contradicts the model or `shapes`.
NamedTensors read_inputs(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs, const NamedShapes& shapes);

// `shapes`, and those of the tensors that it does not name.
NamedShapes shapes_to_bind(const NamedShapes& shapes, const NamedTensors& tensors);

// Throws InvalidArgument where an input that is read has no tensor.
void check_all_given(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors);

using NamedFeeds = std::map<std::string, AnyTensor>;

// The tensors as bound `inputs` are fed: sparse ones without what is zero.
NamedFeeds feeds_of(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors);

// Outputs as they are shown, compared and written: dense.
std::vector<Tensor> dense_of(std::vector<AnyTensor> tensors);

// Adds random tensors for the inputs that have none; `inputs` are bound ones. One that is not read
// gets none where its shape is unknown. Those that are fed sparsely have about half as many
// elements as there is room for.
void add_random(const std::vector<ValueDescription>& inputs, uint64_t seed, NamedTensors& tensors);

}  // namespace tessera::cli
