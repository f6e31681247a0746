// Checks a node against its op's schema.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// The newest version of `op` in operator set `opset`; nullopt if the op was added later or has been
// removed.
std::optional<int> version_in(const Op& op, int opset);

// The inputs (outputs) of `version` of the op, in order.
std::vector<Parameter> parameters_of(const std::vector<Parameter>& all, int version);

// Checks the number of inputs and outputs and the attributes of `node` (whose version is set), and
// adds the defaults of that version. Throws InvalidModel.
void complete(const Op& op, Node& node);

// Checks the element types of the inputs. Throws InvalidModel; if two inputs should agree, it names
// both.
void check_types(const Op& op, const Node& node, std::span<const InferInput> inputs);

// "node 'conv1' (Conv), input 'W'".
std::string input_location(const Op& op, const Node& node, size_t index);

}  // namespace tessera::ops
