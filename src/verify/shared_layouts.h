// What the layouts mean whose names all libraries share; written down once more, on purpose without
// any plug-in's code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/stored_tensor.h"

namespace tessera::verification {

// The bytes that `row_major` has in the layout `name` of the contract; nullopt where that is no
// shared name, or does not hold such tensors.
std::optional<std::vector<char>> shared_layout(const std::string& name,
                                               const StoredTensor& row_major);

}  // namespace tessera::verification
