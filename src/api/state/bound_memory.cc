#include "api/state/bound_memory.h"

#include <algorithm>
#include <utility>

#include "api/options/io_layouts.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {
namespace {

std::string type_text(const Tensor& tensor) {
  return std::string(name(tensor.type())) + " " + dims_text(tensor.dims());
}

// Whether `memory` has the type and shape of this output, as far as they are known.
bool is_for(const ValueDescription& output, const Tensor& memory) {
  const bool is_known =
      output.shape && std::all_of(output.shape->begin(), output.shape->end(),
                                  [](const Dimension& dim) { return dim.value.has_value(); });
  return !is_known || output.text == type_text(memory);
}

}  // namespace

void BoundMemory::bind_input(ShapePlan& plan, size_t index, const AnyTensor& memory) {
  const IoValue input{plan.inputs[index], plan.input_forms[index]};
  declared_.check_range(input.description, dims_of(memory));
  if (!declared_.is_read(index)) {
    // It may have any dimensions that the model declares.
    check_kind(input, memory);
    declared_.check(input.description, dims_of(memory));
    inputs_[index] = memory;
    return;
  }
  const bool is_for_plan = dims_of(memory) == plan.dims[index] ||
                           !declared_.may_become(input.description.name, dims_of(memory));
  is_complete_ = false;
  if (is_for_plan) {
    Tensor fed = feed(input, memory);
    if (is_attached_) plan.runner->io_binding().bind_input(index, std::move(fed));
  } else {
    check_kind(input, memory);
    if (fixed_shapes_) refuse_shape(input.description, dims_of(memory));
    is_attached_ = false;
  }
  inputs_[index] = memory;
}

void BoundMemory::bind_output(ShapePlan& plan, size_t index, Tensor memory) {
  const ValueDescription& output = plan.outputs[index];
  const std::string where = "output '" + output.name + "'";
  if (!output.layout.starts_with(TESSERA_LAYOUT_DEFAULT)) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a dense output, found one that was bound in " + output.layout +
                    ": take it from what run_any() gives");
  }
  const bool is_for_plan = is_for(output, memory);
  const bool is_for_others = !fixed_shapes_ && memory.type() == output.type &&
                             declared_.may_become(output.name, memory.dims());
  if (!is_for_plan && !is_for_others) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory for " + output.text + ", found " + type_text(memory));
  }
  if (!memory.is_writable()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected memory that may be written (Tensor::over), found a tensor to read from");
  }
  is_complete_ = false;
  if (is_for_plan && is_attached_) {
    plan.runner->io_binding().bind_result(index, memory);
  } else {
    is_attached_ = false;
  }
  outputs_[output.name] = std::move(memory);
}

void BoundMemory::clear(ShapePlan& plan) {
  detach(plan);
  inputs_.assign(inputs_.size(), std::nullopt);
  outputs_.clear();
  is_attached_ = true;
}

const Dims* BoundMemory::input_dims(size_t index) const {
  return inputs_[index] ? &dims_of(*inputs_[index]) : nullptr;
}

void BoundMemory::attach(ShapePlan& plan) {
  if (is_attached_) return;
  IoBinding& io_binding = plan.runner->io_binding();
  for (size_t index = 0; index < inputs_.size(); ++index) {
    const std::optional<AnyTensor>& memory = inputs_[index];
    // Memory of other dimensions is not bound: a tensor that is passed to one run may replace it.
    const bool is_fit = memory && dims_of(*memory) == plan.dims[index];
    const IoValue input{plan.inputs[index], plan.input_forms[index]};
    io_binding.bind_input(index, is_fit ? feed(input, *memory) : Tensor());
  }
  for (size_t index = 0; index < plan.outputs.size(); ++index) {
    const ValueDescription& output = plan.outputs[index];
    const auto memory = outputs_.find(output.name);
    if (memory == outputs_.end()) continue;
    if (!is_for(output, memory->second)) {
      throw Error(ErrorKind::InvalidArgument, "output '" + output.name + "'",
                  "expected memory for " + output.text + ", which it is for these inputs, found " +
                      type_text(memory->second) + "; bind other memory, or clear the bindings");
    }
    io_binding.bind_result(index, memory->second);
  }
  is_attached_ = true;
}

void BoundMemory::detach(ShapePlan& plan) {
  IoBinding& io_binding = plan.runner->io_binding();
  for (size_t index = 0; index < plan.inputs.size(); ++index) io_binding.bind_input(index, {});
  for (size_t index = 0; index < plan.outputs.size(); ++index) io_binding.bind_result(index, {});
  is_attached_ = false;
  is_complete_ = false;
}

void BoundMemory::check_complete(const ShapePlan& plan) {
  const IoBinding& io_binding = plan.runner->io_binding();
  for (size_t index = 0; index < plan.inputs.size(); ++index) {
    if (!plan.inputs[index].is_read || io_binding.is_input_bound(index)) continue;
    throw Error(ErrorKind::InvalidArgument, "input '" + plan.inputs[index].name + "'",
                "expected all inputs to be bound, found none bound for this one");
  }
  for (size_t index = 0; index < plan.outputs.size(); ++index) {
    if (io_binding.is_result_bound(index)) continue;
    throw Error(ErrorKind::InvalidArgument, "output '" + plan.outputs[index].name + "'",
                "expected all outputs to be bound, found none bound for this one");
  }
  is_complete_ = true;
}

}  // namespace tessera
