#include "ops/op.h"

#include <algorithm>
#include <utility>

#include "base/errors/check.h"
#include "ops/on_ranks.h"
#include "ops/schema.h"
#include "tessera/error.h"

namespace tessera::ops {

std::string TypeSet::text() const {
  std::vector<std::string_view> names;
  for (auto type = DataType::Bool; type <= DataType::UInt2;
       type = static_cast<DataType>(static_cast<int>(type) + 1)) {
    if (contains(type)) names.push_back(name(type));
  }
  std::string result;
  for (size_t index = 0; index < names.size(); ++index) {
    if (index > 0) result += index + 1 == names.size() ? " or " : ", ";
    result += names[index];
  }
  return result;
}

TypeSet TypeVariable::types_in(int version) const {
  TypeSet all = types;
  for (const AddedTypes& row : added) {
    if (row.since <= version) all = all | row.types;
  }
  return all;
}

std::vector<AddedTypes> small_types_since(int since) {
  std::vector<AddedTypes> rows = {
      {19, kFloat8Types}, {21, kInt4Types}, {23, kFloat4Type}, {24, kPowerType}, {25, kInt2Types}};
  for (AddedTypes& row : rows) row.since = std::max(row.since, since);
  return rows;
}

const Shape* InferContext::shape(size_t index) const {
  const Type& type = inputs_[index].type;
  return type.shape ? &*type.shape : nullptr;
}

const Tensor* InferContext::constant(size_t index) const {
  const InferInput& input = inputs_[index];
  if (input.is_present && input.constant == nullptr) has_open_question_ = true;
  constants_read_ |= bit_of(index);
  return input.constant;
}

const std::optional<std::vector<Dim>>& InferContext::elements(size_t index) const {
  const InferInput& input = inputs_[index];
  const bool is_decided =
      input.constant != nullptr || (input.elements && is_known(*input.elements));
  if (input.is_present && !is_decided) has_open_question_ = true;
  return input.elements;
}

std::optional<std::vector<int64_t>> InferContext::known_integers(size_t index) const {
  const auto& elements = this->elements(index);
  if (!elements || !is_known(*elements)) return std::nullopt;
  return dims_from(*elements);
}

void InferContext::set_output(size_t index, DataType element, std::optional<Shape> shape) {
  if (index >= outputs_.size() || node_.outputs[index].is_none()) return;
  outputs_[index].type = Type::tensor(element, std::move(shape));
}

void InferContext::set_elements(size_t index, std::optional<std::vector<Dim>> elements) {
  if (index >= outputs_.size() || node_.outputs[index].is_none()) return;
  outputs_[index].elements = std::move(elements);
}

int64_t InferContext::normalized_axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    fail("expected an axis in [" + std::to_string(-rank) + ", " + std::to_string(rank) +
         ") for rank " + std::to_string(rank) + ", found " + std::to_string(axis));
  }
  return axis < 0 ? axis + rank : axis;
}

void InferContext::fail(const std::string& message) const {
  throw Error(ErrorKind::InvalidModel, location_of(node_), message);
}

void InferContext::fail_input(size_t index, const std::string& message) const {
  throw Error(ErrorKind::InvalidModel, input_location(op_, node_, index), message);
}

void InferContext::fail_unsupported(const std::string& message) const {
  throw Error(ErrorKind::Unsupported, location_of(node_), message);
}

int64_t no_flops(const Node&, std::span<const Type>, std::span<const Type>) { return 0; }

int64_t flops_per_output(const Node&, std::span<const Type>, std::span<const Type> outputs) {
  if (outputs.empty() || !outputs[0].is_known_tensor()) return 0;
  return element_count(dims_from(*outputs[0].shape));
}

int64_t flops_per_input(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  if (inputs.empty() || !inputs[0].is_known_tensor()) return 0;
  return element_count(dims_from(*inputs[0].shape));
}

void ValueCall::fail(const std::string& message) const {
  throw Error(ErrorKind::InvalidArgument, location_of(node), message);
}

bool runs_on_values(const Op& op, const Graph& graph, const Node& node) {
  if (op.kernel == nullptr || !node.bodies.empty()) return op.value_kernel != nullptr;
  const auto is_other = [&](ValueId id) {
    if (id.is_none() || graph[id].type.kind == Type::Kind::Unknown) return false;
    return !graph[id].type.is_tensor() || graph[id].type.element == DataType::String;
  };
  return std::ranges::any_of(node.inputs, is_other) || std::ranges::any_of(node.outputs, is_other);
}

std::shared_ptr<const void> prepare_node(const Op& op, const Node& node,
                                         std::span<const Tensor> inputs) {
  const auto* const kernel = op.kernel.target<PreparedKernel>();
  if (kernel == nullptr) return nullptr;
  std::vector<DataType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  return kernel->prepare(node, types);
}

std::shared_ptr<const void> prepare_node(const Op& op, const Graph& graph, const Node& node) {
  const auto* const kernel = op.kernel.target<PreparedKernel>();
  if (kernel == nullptr) return nullptr;
  std::vector<DataType> types;
  for (const ValueId input : node.inputs) {
    types.push_back(input.is_none() ? DataType::Undefined : graph[input].type.element);
  }
  return kernel->prepare(node, types);
}

void run_on_values(const Op& op, const ValueCall& call) {
  if (op.value_kernel != nullptr) {
    op.value_kernel(call);
  } else {
    run_on_ranks(op, call);
  }
}

void KernelCall::fail(const std::string& message) const {
  throw Error(ErrorKind::InvalidArgument, location_of(node), message);
}

}  // namespace tessera::ops
