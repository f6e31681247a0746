// The operators that a plug-in brings, for the registry: models may use them like ONNX's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Says which op is wrong and how, or "". Reads no more than its struct_size allows, but has to
// believe its counts and pointers.
std::string explain_illegal_op(const tessera_op& op);

// The ops of the table of `backend`. `keeps_open` is held by every rule and kernel made here, so
// that what they point to stays loaded. Throws Unsupported where an op is not legal or is there
// twice.
//
// Rules and kernels get as many inputs and outputs as the op declares, variadic ones aside, even
// where the node leaves the last ones out. A rule that fails with InvalidModel, InvalidArgument,
// Unsupported or OutOfMemory means the model: its message is thrown as that. Anything else, and a
// type that cannot be, is the backend's fault: DeviceFailed, at the node and naming the backend.
// An elementwise op hands symbols of its inputs' dimensions on.
std::vector<ops::Op> make_ops(const tessera_backend& backend,
                              const std::shared_ptr<const void>& keeps_open);

}  // namespace tessera
