// Operators of plug-ins for the registry: models may use them like ONNX's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/op.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The reason why an op is illegal; "" if it is legal. Reads no further than its struct_size, but
// has to trust its counts and pointers.
std::string explain_illegal_op(const tessera_op& op);

// The ops in the table of `backend`. Every rule and kernel made here holds `keeps_open`, so that
// the plug-in stays loaded. Throws Unsupported if an op is illegal or a duplicate.
//
// Rules and kernels get as many inputs and outputs as the op declares, except variadic ones, even
// if the node omits the last ones. If a rule fails with InvalidModel, InvalidArgument, Unsupported
// or OutOfMemory, the error concerns the model and is thrown with this kind. Any other failure, and
// an impossible type, is the backend's fault: DeviceFailed at the node, naming the backend. An
// elementwise op propagates symbols of its inputs' dimensions.
std::vector<ops::Op> make_ops(const tessera_backend& backend,
                              const std::shared_ptr<const void>& keeps_open);

}  // namespace tessera
