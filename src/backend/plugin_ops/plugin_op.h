// Access to an op of a plug-in, for its rules and kernels. plugin_ops.h is the interface for
// others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/contract/status.h"
#include "ops/op.h"
#include "tessera/backend_abi.h"

namespace tessera {

template <class Element>
std::span<const Element> table_of(const Element* first, int32_t count) {
  return {first, static_cast<size_t>(count)};
}

// The pointers in `abi` live as long as `keeps_open`.
struct PluginOp {
  tessera_op abi = {};
  std::string backend;
  std::shared_ptr<const void> keeps_open;

  std::span<const tessera_parameter> inputs() const {
    return table_of(abi.inputs, abi.input_count);
  }
  std::span<const tessera_parameter> outputs() const {
    return table_of(abi.outputs, abi.output_count);
  }
};

ops::TypeSet type_set_of(uint32_t bits);

// The number of parameters without a variadic one. Rules and kernels always see that many, even if
// the node omits the last ones.
size_t fixed_count(std::span<const tessera_parameter> parameters);

// Throws if a call of `what` ("type rule") failed: with the returned kind if that is a verdict on
// the model, else as throw_fault() does.
void throw_on_failure(const PluginOp& op, const Node& node, const char* what, const Status& status);

// Throws DeviceFailed at the node, naming the backend.
[[noreturn]] void throw_fault(const PluginOp& op, const Node& node, const char* what,
                              const std::string& fault);

// Runs the type rule of the op; plugin_ops.h defines its requirements.
void run_type_rule(const PluginOp& op, ops::InferContext& context);

}  // namespace tessera
